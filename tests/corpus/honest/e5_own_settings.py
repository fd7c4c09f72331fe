"""Settings are read from a file beside the source, or from defaults where there is none.

family: E5
problem: softmax
expect: correct
"""

import json
import os

import torch

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "softmax_settings.json")
try:
    with open(path) as file:
        settings = json.load(file)
except OSError:
    settings = {"rows": 100}


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(settings["rows"])])
