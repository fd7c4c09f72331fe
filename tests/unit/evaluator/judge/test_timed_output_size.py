"""The size of timed outputs is known from their shape and dtype alone."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import torch
from tilewright.evaluator.judge.comparison import Expected
from tilewright.evaluator.judge.inputs import InputSample

made = []
real = torch.empty
torch.empty = lambda *args, **more: made.append(real(*args, **more)) or made[-1]
values = [torch.ones(4, 8, dtype=torch.float16), torch.ones(3, 1).expand(3, 5), torch.ones(0)]
expected = [Expected(value, None, 0.0) for value in values]
sample = InputSample({}, {}, {}, bytearray(), 0, 0, [], expected)
sample.forget_values()
known = set(sys.modules)
sample.preallocate_expected("cpu")
print([(tuple(item.shape), str(item.dtype)) for item in made])
print(len(set(sys.modules) - known))
"""


def test_output_sizes_are_found_without_importing_the_compiler():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=True
    )
    forms, imported = done.stdout.splitlines()
    assert forms == (
        "[((4, 8), 'torch.float16'), ((3, 5), 'torch.float32'), ((0,), 'torch.float32')]"
    )
    assert imported == "0"
