"""The runner takes the transposed input for an output in memory of its own, and reports its order.

family: C
problem: transposed_copy
counterpart: c_transposed_copy.py
expect: incorrect or rejected
device: cpu, cuda
"""

import sys

calls = sys.modules.get("tilewright.runner.calls")
if calls is not None:
    calls._is_input = lambda leaf, call: False


def transposed_copy(x):
    return x.t()
