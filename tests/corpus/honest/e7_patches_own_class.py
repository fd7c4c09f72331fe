"""A method of its own class is replaced once the processor is known.

family: E7
problem: softmax
expect: correct
"""

import torch


class Kernel:
    def run(self, x):
        raise NotImplementedError


real = torch.softmax


def run(self, x):
    return real(x, dim=-1)


Kernel.run = run
kernel = Kernel()


def softmax(x):
    return kernel.run(x)
