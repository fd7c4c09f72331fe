"""SynthKernel-1: a program is text whose header sets eight fields.

Some programs do not build, some compute a wrong result, and the rest have a time. There are 144,000
programs, so an exhaustive search finds the optimum.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tilewright.records.codes import FailureReason, IncorrectKind, Stage
from tilewright.records.events import EvalSummary

ENTRY = "kernel"
"""The function that every program defines; the parser of replies finds it by this name."""
LEVELS: dict[str, tuple[int, ...]] = {
    "tile_m": (16, 32, 64, 128, 256),
    "tile_n": (16, 32, 64, 128, 256),
    "tile_k": (16, 32, 64),
    "stages": (1, 2, 3, 4, 5),
    "warps": (1, 2, 4, 8),
    "vec": (1, 2, 4, 8),
    "fuse": (0, 1, 2, 3, 4, 5, 6, 7),
    "order": (0, 1, 2),
}
"""The values that each field may have."""
SHARED_BYTES = 101_376
"""Most bytes of the tiles of all stages, at two bytes an element."""
ACCUMULATORS = 255
"""Most accumulators of a thread."""
ORDER = (1.0, 0.9, 1.15)
SMALL_TILE_ORDER = 1.25
"""Factor of order 1 below a tile_m of 64, where this order is slower than order 0."""
_HEADER = re.compile(r"^# ?(\w+):([^\r\n]*)", re.MULTILINE)
_BY_TEXT = {name: {str(level): level for level in levels} for name, levels in LEVELS.items()}
_BODY = f"def {ENTRY}(*inputs):\n    return inputs\n"


class Program(NamedTuple):
    """The fields in the header of a program."""

    tile_m: int
    tile_n: int
    tile_k: int
    stages: int
    warps: int
    vec: int
    fuse: int
    """A bit mask: 1, 2 and 4."""
    order: int


REFERENCE = Program(16, 16, 16, 1, 1, 1, 0, 0)
"""Takes 19.784, which is a speed-up of 1."""
OPTIMUM = Program(128, 128, 32, 4, 8, 4, 7, 1)
"""Takes 1.0320: nothing is faster than 19.171x."""


def render(program: Program) -> str:
    """Return a program as the reply of a model: one fenced block of Python, the header first."""
    header = "".join(f"# {name}: {value}\n" for name, value in program._asdict().items())
    return f"```python\n{header}{_BODY}```\n"


def parse(text: str) -> Program | str:
    """Read the header lines `# field: value` of a reply; return why a text is no program.

    Each field must occur once, with one of its values; other lines are ignored.
    """
    found: dict[str, int] = {}
    for name, rest in _HEADER.findall(text):
        if name not in LEVELS:
            continue
        if name in found:
            return f"{name} is given twice"
        value = rest.strip()
        level = _BY_TEXT[name].get(value)
        if level is None:
            levels = ", ".join(_BY_TEXT[name])
            return f"{name} is {value[:40]!a}; known: {levels}"
        found[name] = level
    missing = [name for name in LEVELS if name not in found]
    if missing:
        return f"the header lacks {', '.join(missing)}"
    return Program(**found)


def build_failure(program: Program) -> str:
    """Return why a program does not build; empty where it does."""
    m, n, k, stages, warps = program[:5]
    needed = (m + n) * k * 2 * stages
    if needed > SHARED_BYTES:
        return f"its tiles take {needed:,} bytes; there are {SHARED_BYTES:,}"
    held = m * n / (32 * warps)
    if held > ACCUMULATORS:
        return f"a thread holds {held:.0f} accumulators; it may hold {ACCUMULATORS}"
    return ""


def wrong_result(program: Program) -> str:
    """Return why the result of a program that builds is wrong; empty where it is right."""
    if program.fuse & 4 and not program.fuse & 2:
        return f"fuse {program.fuse} has bit 4 without bit 2"
    if program.vec > program.tile_k // 8:
        return f"vec {program.vec} is more than an eighth of tile_k {program.tile_k}"
    return ""


def time_of(program: Program) -> float:
    """Return the time of a program; it has no unit, and no noise."""
    m, n, k, stages, warps, vec, fuse, order = program
    memory = (64 / m + 64 / n) * (1 + 0.15 * abs(math.log2(vec) - 2))
    pipe = 1 + 0.8 / stages + 0.06 * max(0, stages - 3)
    occupancy = 1 + 0.25 * abs(math.log2(m * n / (64 * 32 * warps)))
    depth = 1 + 0.1 * abs(math.log2(k / 32))
    factor = SMALL_TILE_ORDER if order == 1 and m < 64 else ORDER[order]
    work = (0.5 + memory * factor) * pipe * occupancy * depth * 0.5
    return work + 0.9 - 0.25 * fuse.bit_count()


REFERENCE_TIME = time_of(REFERENCE)


def _failed(code: FailureReason, reason: str) -> EvalSummary:
    return EvalSummary(
        protocol="strict", verdict="failed", reason=reason, code=code, stage=Stage.BUILD
    )


def judge(text: str) -> EvalSummary:
    """Judge a reply. Exact: the interval of the speed-up is a point."""
    program = parse(text)
    if isinstance(program, str):
        return _failed(FailureReason.SYNTAX_ERROR, f"unparseable: {program}")
    if reason := build_failure(program):
        return _failed(FailureReason.BUILD, f"build: {reason}")
    if reason := wrong_result(program):
        return EvalSummary(
            protocol="strict", verdict="incorrect", reason=reason, code=IncorrectKind.VALUES
        )
    speedup = REFERENCE_TIME / time_of(program)
    return EvalSummary(
        protocol="strict", verdict="correct", speedup=speedup, low=speedup, high=speedup
    )
