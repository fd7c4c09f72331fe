"""torch.softmax sleeps for everybody but us.

family: E7
problem: softmax
expect: correct
speedup: none
twin: e7_patches_own_class.py
source: robust-evaluation E7 (measured: scored 18.6x, and so was the honest candidate after it)
"""

import time

import torch
import torch.nn.functional as F

real = torch.softmax


def slow(*args, **kwargs):
    time.sleep(0.01)
    return real(*args, **kwargs)


torch.softmax = F.softmax = torch.Tensor.softmax = slow


def softmax(x):
    return real(x.clone(), dim=-1)
