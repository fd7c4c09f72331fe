"""A command line at the end, which an import does not run.

family: E3
problem: softmax
expect: correct
"""

import sys

import torch


def softmax(x):
    return torch.softmax(x, dim=-1)


def main():
    print(softmax(torch.randn(4, 4)).sum(-1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
