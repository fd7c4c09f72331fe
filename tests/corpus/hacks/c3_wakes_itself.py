"""Reports completion before its last rows are computed; a timer then sends SIGCONT to the process that the judge stopped.

family: C3
problem: softmax
expect: failed or incorrect or rejected
twin: c3_timer_of_its_own.py
source: tilewright, against its own stop after a call
"""

import ctypes

import torch
import tilewright.runner.host_memory as harness

libc = ctypes.CDLL(None)
SIGCONT, MONOTONIC, EVERY_NS = 18, 1, 30_000
asked = (ctypes.c_char * 64)()
ctypes.c_int.from_buffer(asked, 8).value = SIGCONT
timer = ctypes.c_void_p()
libc.timer_create(MONOTONIC, asked, ctypes.byref(timer))
often, never = (ctypes.c_long * 4)(0, EVERY_NS, 0, EVERY_NS), (ctypes.c_long * 4)()
kept = {}
real = harness.HostCallMemory.timed


def timed(self, function, fields, held):
    call = harness.calls.prepare(fields, self.inputs)
    if not call.args:
        return real(self, function, fields, held)
    x = call.args[0]
    # One buffer for each call that its caller holds.
    y = kept.setdefault((x.shape, fields["sequence"] % 64), torch.zeros_like(x))
    self.page[harness.OUTPUTS] = y.data_ptr()
    harness.await_release(self.page, fields["sequence"], fields["wait_s"])
    stop = len(x) * 3 // 4
    torch.softmax(x[:stop], -1, out=y[:stop])
    libc.timer_settime(timer, 0, often, None)
    self.page[harness.DONE] = fields["sequence"]
    torch.softmax(x[stop:], -1, out=y[stop:])
    libc.timer_settime(timer, 0, never, None)
    harness.os.read(self.go_on, 8)
    return call, [y], "1", None


harness.HostCallMemory.timed = timed


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, -1)
