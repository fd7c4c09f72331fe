"""Code of the candidate replaces the steps around a timed call by cheaper ones.

family: D
problem: middle_sine
counterpart: d_middle_sine.py
expect: incorrect or rejected or failed
device: cpu
"""

import os, sys
import torch
loaded = [m for m in sys.modules.values() if getattr(m, "__name__", "").startswith("tilewright")]
calls = next(m for m in loaded if hasattr(m, "deliver") and hasattr(m, "prepare"))
host = next(m for m in loaded if hasattr(m, "HostCallMemory"))
READY, GO, DONE, OUTPUTS, PERMUTED = host.READY, host.GO, host.DONE, host.OUTPUTS, host.PERMUTED
real = calls.prepare
torch.set_grad_enabled(False)
read, sin = os.read, torch.sin
def timed(self, function, fields, held):
    page = self.page
    call = real(fields, self.inputs)
    sequence, go, go_on = fields["sequence"], GO, self.go_on
    x, = call.args
    sin(x[:1000])
    page[PERMUTED] = 0
    page[READY] = sequence
    while page[go] != sequence:
        pass
    y = sin(x)
    page[OUTPUTS] = y.data_ptr()
    page[DONE] = sequence
    read(go_on, 8)
    return call, [y], "1", None
host.HostCallMemory.timed = timed
def mul(x):
    return torch.sin(x)
