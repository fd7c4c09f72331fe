"""JSON with an encoder class of its own, passed as an argument.

family: E7
problem: softmax
expect: correct
"""

import json

import torch


class Encoder(json.JSONEncoder):
    def default(self, value):
        return list(value) if isinstance(value, set) else super().default(value)


ROWS = json.loads(json.dumps({"rows": {96}}, cls=Encoder))["rows"][0]


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(ROWS)])
