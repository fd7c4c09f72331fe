"""A new problem: a file that works as it is, and a candidate that solves it honestly."""

from __future__ import annotations

import keyword
from pathlib import Path

from tilewright.errors import ConfigError, reason_of

_PROBLEM = '''"""An example operator on the rows of a matrix. Describe and write your own here."""

import torch

ENTRY = "{name}"

# Every case is judged and timed. Put the sizes that matter last; odd ones find the bugs.
CASES = [
    {{"name": "tiny", "rows": 3, "cols": 5}},
    {{"name": "medium", "rows": 129, "cols": 1000}},
    {{"name": "large", "rows": 256, "cols": 4096}},
]

# Parameters that may vary within inclusive bounds: the judge draws secret sizes from them.
VARY = {{"sizes": {{"rows": (1, 300), "cols": (2, 3000)}}}}


def inputs(case, generator):
    """Draw the arguments of `reference`. All randomness comes from `generator`."""
    return (torch.randn(case["rows"], case["cols"], generator=generator),)


def reference(x):
    """Say what is right. It runs in float64 too, so leave dtypes to the inputs."""
    return x / torch.sqrt(torch.mean(x * x, dim=-1, keepdim=True) + 1e-6)
'''

_CANDIDATE = '''"""One reciprocal square root for each row, then a product for each element."""

import torch


def {name}(x):
    scale = torch.rsqrt(torch.square(x).mean(dim=-1, keepdim=True).add_(1e-6))
    return torch.mul(x, scale)
'''


def write_new(name: str, parent: Path) -> tuple[Path, Path]:
    """Write `NAME/problem.py` and `NAME/candidate.py` below `parent`; return both paths."""
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name):
        raise ConfigError(f"{name!r} cannot be the name of a Python function; write my_kernel, say")
    folder = parent / name
    texts = {folder / "problem.py": _PROBLEM, folder / "candidate.py": _CANDIDATE}
    taken = [str(path) for path in texts if path.exists()]
    if taken:
        raise ConfigError(f"{', '.join(taken)}: there already; nothing was overwritten")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as out:
                out.write(text.format(name=name))
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be written: {reason_of(error)}") from error
    problem, candidate = texts
    return problem, candidate
