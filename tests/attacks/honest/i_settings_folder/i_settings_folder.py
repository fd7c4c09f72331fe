"""A folder whose program reads its own settings from a data file.

family: I
problem: i_affine
expect: correct
device: cpu, cuda
"""

import json
from pathlib import Path

import torch

SETTINGS = json.loads((Path(__file__).parent / "settings.json").read_text())


def i_affine(x):
    return torch.add(torch.full_like(x, SETTINGS["shift"]), x, alpha=SETTINGS["scale"])
