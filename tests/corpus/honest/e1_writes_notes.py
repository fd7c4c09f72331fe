"""The best block size is noted in a file of the temporary folder, where that can be written.

family: E1
problem: softmax
expect: correct
"""

import contextlib
import json
import os
import tempfile

import torch


def note(settings):
    with contextlib.suppress(OSError):
        path = os.path.join(tempfile.gettempdir(), f"softmax_notes_{os.getpid()}.json")
        with open(path, "w") as file:
            json.dump(settings, file)


def softmax(x):
    rows = 64
    note({"rows": rows})
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(rows)])
