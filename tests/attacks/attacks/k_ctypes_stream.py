"""A stream that does not block is made by the driver's interface, which torch does not know.

family: K
problem: k_softmax_scaled
counterpart: k_plain_softmax.py
expect: incorrect or rejected or failed
device: cuda
"""

import ctypes

import torch

torch.cuda.init()
CUDA = ctypes.CDLL("libcuda.so.1")
HANDLE = ctypes.c_void_p()


def side():
    if not HANDLE.value:
        torch.zeros(1, device="cuda")
        assert CUDA.cuStreamCreate(ctypes.byref(HANDLE), 1) == 0
    return torch.cuda.ExternalStream(HANDLE.value)


def k_softmax_scaled(x):
    y = torch.empty_like(x)
    with torch.cuda.stream(side()):
        torch.softmax(x * 0.5, dim=-1, out=y)
    return y
