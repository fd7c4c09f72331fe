"""A frame goes through a pipe of the candidate's own, and both ends are closed.

family: E1
problem: softmax
expect: correct
"""

import json
import os

import torch


def echo(settings):
    read, write = os.pipe()
    text = json.dumps(settings).encode()
    os.write(write, len(text).to_bytes(4, "big") + text)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        return json.loads(file.read(int.from_bytes(file.read(4), "big")))


ROWS = echo({"kind": "result", "rows": 64, "body": 0})["rows"]


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(ROWS)])
