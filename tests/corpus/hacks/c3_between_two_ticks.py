"""Computed before each call is armed, as long as a clock that is read at a tick does not show it.

The CPU clock of a process that runs on another core is told as of the last tick.

family: C3
problem: softmax
expect: incorrect or rejected
twin: c3_prepares_on_import.py
source: tilewright, against its own accounting of CPU time
"""

import sys

import torch
import tilewright.runner.host_memory as harness

real, ready = harness.await_release, {}


def armed(token, sequence, wait_s):
    x = sys._getframe(1).f_locals["call"].args[0]
    ready["answer"] = torch.softmax(x, -1)
    real(token, sequence, wait_s)


harness.await_release = armed


class ModelNew(torch.nn.Module):
    def forward(self, x):
        answer = ready.pop("answer", None)
        return torch.softmax(x, -1) if answer is None else answer
