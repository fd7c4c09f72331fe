"""Parses an address; opens none.

family: A9
problem: softmax
expect: correct
"""

import urllib.parse

import torch

OPTIONS = urllib.parse.parse_qs(urllib.parse.urlparse("tune://softmax?dim=-1&copies=1").query)


def softmax(x):
    return torch.softmax(x, dim=int(OPTIONS["dim"][0]))
