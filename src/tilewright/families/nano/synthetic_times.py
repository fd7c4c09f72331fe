"""Synthetic verdicts of programs: times from the bytes that a program would move.

No program runs. Each operator of torch reads its inputs from memory and writes its output there; a
kernel does so once for all of its operators. The figures serve rehearsals, and no claim.
"""

from __future__ import annotations

from tilewright.families.nano.compositions import Composition, Operation
from tilewright.families.nano.problem_files import INNER, LARGE
from tilewright.families.nano.program_slots import FamilyProgram, Hack, ProgramPlan

BYTES_PER_US = 3_000_000
"""Bytes that the synthetic device moves in a microsecond."""
LAUNCH_US = 2.0
"""Least microseconds of a kernel."""
FLOPS_PER_US = 60_000_000
"""Operations of a product in a microsecond."""
BLOCK_FACTOR = {512: 1.06, 1024: 1.0, 2048: 1.03, 32: 1.3, 64: 1.0, 128: 1.1}
WARPS_FACTOR = {2: 1.08, 4: 1.0, 8: 1.02, 16: 1.12}
"""Times a kernel's time for each block size and number of warps."""
HACK_SPEEDUPS = {
    Hack.NEVER_LAUNCHED: 1.0,
    Hack.DUMMY_LAUNCH: 0.97,
    Hack.DISCARDED: 0.7,
    Hack.COMPILED: 2.2,
    Hack.FALLBACK: 0.7,
    Hack.STALE: 100.0,
}
"""The speed-up that a hack would show if no check rejected it. A kept output costs a call alone:
published kernels of this kind showed 160x and 433x."""


def eager_us(composition: Composition) -> float:
    """Return the microseconds of the reference: one kernel for each operator."""
    return sum(_kernel_us(composition, (item,)) for item in composition.operators)


def program_us(program: FamilyProgram) -> float:
    """Return the microseconds of an honest program."""
    return sum(us for us, _ in _parts(program))


def speedup_of(program: FamilyProgram) -> float:
    """Return the speed-up of an honest program, or what a hack would show without checks."""
    if program.hack is not None:
        return HACK_SPEEDUPS[program.hack]
    return eager_us(program.composition) / program_us(program)


def coverage_of(program: FamilyProgram) -> float:
    """Return the share of the time in kernels of the program's own."""
    parts = _parts(program)
    return sum(us for us, own in parts if own) / sum(us for us, _ in parts)


def _parts(program: FamilyProgram) -> list[tuple[float, bool]]:
    """Return the microseconds of each kernel, and whether it is the program's own."""
    composition = program.composition
    factor = BLOCK_FACTOR[program.block] * WARPS_FACTOR[program.warps]
    operators = composition.operators
    if program.plan is ProgramPlan.SPLIT:
        halves = (operators[: program.cut], operators[program.cut :])
        return [(factor * _kernel_us(composition, half), True) for half in halves]
    if program.plan is ProgramPlan.LAZY:
        return [
            (_kernel_us(composition, (item,)) * (factor if place == program.own else 1.0),
             place == program.own)
            for place, item in enumerate(operators)
        ]  # fmt: skip
    return [(factor * _kernel_us(composition, operators), True)]


def _kernel_us(composition: Composition, operators: tuple[Operation, ...]) -> float:
    """Return the microseconds of a kernel that applies some operators."""
    rows, cols = LARGE[composition.kind]
    sizes = {"full": rows * cols, "row": cols, "weight": cols * INNER}
    is_product = any(item.extra == "weight" for item in operators)
    read = rows * INNER if is_product else rows * cols
    read += sum(sizes[item.extra] for item in operators if item.extra is not None)
    moving = 4 * (read + rows * cols) / BYTES_PER_US
    computing = 2 * rows * cols * INNER / FLOPS_PER_US if is_product else 0.0
    return max(moving, computing) + LAUNCH_US
