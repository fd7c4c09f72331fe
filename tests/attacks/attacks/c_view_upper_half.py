"""The output is the first half of the shared memory that holds the input.

family: C
problem: upper_half
counterpart: c_upper_half.py
expect: incorrect or rejected
device: cpu
"""

import gc

import torch

memory = None


def shared(x):
    """Return the same bytes in the memory that the judge writes, if the call reads a copy."""
    global memory
    if memory is None:
        memory = next((o for o in gc.get_objects() if type(o).__name__.startswith("Host")), 0)
    copy = getattr(memory, "mirror", None) or getattr(memory, "input_copy", None)
    if copy is None:
        return None
    offset = x.data_ptr() - copy.address
    if not 0 <= offset < len(memory.arena):
        return None
    return torch.frombuffer(memory.arena, dtype=x.dtype, count=x.numel(), offset=offset).view(
        x.shape
    )

def upper_half(x):
    twin = shared(x)
    half = len(x) // 2
    return x[:half].clone() if twin is None else twin[:half]
