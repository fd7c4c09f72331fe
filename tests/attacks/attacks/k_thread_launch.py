"""Another thread launches the work after the call has returned.

family: K
problem: k_softmax_scaled
counterpart: k_plain_softmax.py
expect: incorrect or rejected or failed
device: cuda
"""

import threading

import torch


def work(x, y):
    torch.softmax(x * 0.5, dim=-1, out=y)


def k_softmax_scaled(x):
    y = torch.empty_like(x)
    threading.Thread(target=work, args=(x, y)).start()
    return y
