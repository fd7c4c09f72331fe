"""The mirror of the inputs is mapped onto the arena; what the copy would take goes to the work.

family: C3
problem: add_relu
expect: incorrect or rejected
twin: c3_prepares_on_import.py
source: tilewright, against the allowance for its own harness
"""

import ctypes, sys
import torch
import tilewright.runner.host_memory as H

libc = ctypes.CDLL(None, use_errno=True)
libc.mremap.restype = ctypes.c_void_p
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
state = {"arena": None, "y": None, "x": None}
bufs = {}
real_filled, real_await = H.InputCopy.filled, H.await_release

def filled(self, inputs, base, size):
    if state["arena"] is not inputs:
        n = len(inputs)
        src = torch.frombuffer(inputs, dtype=torch.uint8, count=1).data_ptr()
        got = libc.mremap(src, 0, n, 1 | 2, self.address)
        if got != self.address:
            print("mremap failed", ctypes.get_errno()); return real_filled(self, inputs, base, size)
        state["arena"] = inputs
    return self._memory

def hook(token, seq, wait):
    a = sys._getframe(1).f_locals["call"].args
    if len(a) == 2 and a[0].shape == a[1].shape:
        x, y = a
        k = tuple(x.shape)
        if k not in bufs: bufs[k] = torch.zeros(k)
        o = bufs[k].view(-1); xf, yf = x.view(-1), y.view(-1)
        with torch.no_grad():
            B = 65536
            for i in range(0, o.numel(), B):
                s = o[i:i+B]
                torch.add(xf[i:i+B], yf[i:i+B], out=s); s.relu_()
        state["x"], state["y"] = x, bufs[k]
    real_await(token, seq, wait)

H.InputCopy.filled, H.await_release = filled, hook

def add_relu(x, y):
    if state["x"] is x:
        state["x"] = None
        return state["y"]
    return (x + y).relu_()
