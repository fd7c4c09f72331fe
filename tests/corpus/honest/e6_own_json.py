"""A JSON file of its own is written, changed and read in a temporary folder, then removed.

family: E6
problem: softmax
expect: correct
"""

import json
import os
import tempfile

import torch


def through_file(settings):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "settings.json")
        with open(path, "w") as file:
            json.dump(settings, file)
        with open(path, "r+") as file:
            content = json.load(file)
            content["rows"] *= 2
            file.seek(0)
            json.dump(content, file)
            file.truncate()
        with open(path) as file:
            return json.load(file)


ROWS = through_file({"rows": 32, "tolerance": 1e-6})["rows"]


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(ROWS)])
