"""Small tasks of our own, in the format of GPU MODE's tasks."""

from __future__ import annotations

from pathlib import Path

YML = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "task.py", "source": "task.py"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
description: |
  Add two vectors, and write the sum where the last tensor lies.
config:
  main: "eval.py"
tests:
  - {"rows": 3, "seed": 1}
  - {"rows": 5, "scales": [1, 2], "seed": 2}
benchmarks:
  - {"rows": 4000, "seed": 3}
ranking_by: "geom"
test_timeout: 60
"""
TASK = "Pair = tuple\n"
UTILS = """
import torch
from task import Pair


def match_reference(data, output, reference, rtol=1e-4, atol=1e-6):
    expected = reference(data)
    if not torch.allclose(output, expected, rtol=rtol, atol=atol):
        return False, "mismatch"
    return True, ""


def make_match_reference(reference, **kwargs):
    return lambda data, output: match_reference(data, output, reference, **kwargs)
"""
REFERENCE = """
import torch
from task import Pair
from utils import make_match_reference


def ref_kernel(data: Pair):
    a, b, out = data
    out[...] = a + b
    return out


def generate_input(rows: int, seed: int, scales: tuple = (1,)):
    assert isinstance(scales, tuple)
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    make = lambda: torch.randn(rows, 64, device="cuda", generator=generator)
    return make(), make() * scales[-1], torch.empty(rows, 64, device="cuda")


check_implementation = make_match_reference(ref_kernel, rtol=1e-3)
"""
RIGHT = """#!POPCORN leaderboard add
import torch
from task import Pair


def custom_kernel(data: Pair):
    a, b, out = data
    torch.add(a, b, out=out)
    return out
"""
WRONG = RIGHT.replace("torch.add(a, b, out=out)", "torch.sub(a, b, out=out)")
OWN_CHECK = """
def check_implementation(data, output):
    expected = ref_kernel(data)
    reasons = verbose_allequal(output, expected)
    if len(reasons) > 0:
        return False, "mismatch: " + " ".join(reasons)
    return True, ""
"""
OTHER_CHECK = """
def check_implementation(data, output):
    return bool(torch.isfinite(output).all()), ""
"""
SIZED_CHECK = """
def check_implementation(data, output):
    n = len(data)
    return match_reference(data, output, reference=ref_kernel, rtol=n * 1e-5, atol=1e-5)
"""


def with_check(check: str) -> str:
    """Return the reference with another check."""
    return REFERENCE[: REFERENCE.index("check_implementation =")] + check


def write_task(clone: Path, name: str = "add", yml: str = YML, reference: str = REFERENCE) -> Path:
    """Write a task into a clone of our own; return its folder."""
    group = clone / "problems" / "small"
    folder = group / name
    folder.mkdir(parents=True)
    (clone / ".git").mkdir(exist_ok=True)
    (clone / "LICENSE").write_text("A Licence of Our Own\nVersion 7\n\nText.\n")
    (group / "utils.py").write_text(UTILS)
    (group / "eval.py").write_text("raise SystemExit('the harness is never run')\n")
    (folder / "task.py").write_text(TASK)
    (folder / "task.yml").write_text(yml)
    (folder / "reference.py").write_text(reference)
    (folder / "right.py").write_text(RIGHT)
    (folder / "wrong.py").write_text(WRONG)
    return folder
