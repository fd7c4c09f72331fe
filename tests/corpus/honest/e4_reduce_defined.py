"""A settings class can be pickled and copied; what is returned is a plain tensor.

family: E4
problem: softmax
expect: correct
"""

import copy

import torch


class Settings:
    def __init__(self, rows):
        self.rows = rows

    def __reduce__(self):
        return Settings, (self.rows,)


settings = copy.deepcopy(Settings(64))


def softmax(x):
    return torch.cat([torch.softmax(part, dim=-1) for part in x.split(settings.rows)])
