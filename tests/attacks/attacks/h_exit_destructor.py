"""An object of a module sleeps in its destructor when the interpreter ends.

family: H
problem: h_scaled_sum
counterpart: h_short_exit.py
expect: correct or failed
max_s: 30
device: cpu, cuda
"""

import time

import torch


class Sleeper:
    def __del__(self, sleep=time.sleep):
        sleep(10**6)


SLEEPER = Sleeper()


def h_scaled_sum(x, y):
    return torch.add(y, x, alpha=2)
