"""Runs the census of a problem of the family nano by Triton's interpreter, in a process of its own.

The interpreter is chosen when triton is first imported, which another test may have done before.
"""

from __future__ import annotations

import json
import linecache
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tilewright.families.nano import problem_files
from tilewright.families.nano.compositions import ENTRY, Composition, composition_of
from tilewright.families.nano.program_slots import FamilyProgram, Hack, census
from tilewright.families.nano.program_text import render

SIZES = {"pointwise": (5, 300), "reduction": (5, 300), "linear": (70, 100)}
INNER = 40
SEEDS, SCALES = (1, 2), (1.0, 100.0)
"""Inputs of a program: normal numbers of some seeds, each at some scales."""


def outcomes(problem: str) -> list[float | None]:
    """Return the worst relative error of each program of the census; `None`: it did not run.

    The error is infinite where a value is not finite. A program that torch compiles does not run:
    the compiler needs more than the interpreter, and seconds.
    """
    command = [sys.executable, "-W", "ignore", "-m", "tests.family_programs", problem]
    given = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=given, stdout=subprocess.PIPE, text=True, check=True)
    return [None if item is None else float(item) for item in json.loads(done.stdout)]


def _outcome(program: FamilyProgram, folder: Path, number: int) -> float | None:
    # A file, since Triton reads the source of its kernels.
    path = folder / f"program{number}.py"
    path.write_text(render(program))
    linecache.clearcache()
    names: dict[str, Any] = {"__name__": path.stem}
    try:
        exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), names)
        return _worst_error(program.composition, names[ENTRY])
    except Exception:  # noqa: BLE001 - a broken program may raise anything
        return None


def _worst_error(composition: Composition, compute: Any) -> float:
    import torch

    rows, cols = SIZES[composition.kind]
    names: dict[str, Any] = {}
    exec(problem_files.source_of(composition), names)
    case, worst = {"rows": rows, "cols": cols, "inner": INNER}, 0.0
    for seed in SEEDS:
        drawn = names["inputs"](case, torch.Generator().manual_seed(seed))
        for scale in SCALES:
            values = tuple(scale * item for item in drawn)
            wanted, made = names["reference"](*values), compute(*values)
            if not torch.isfinite(made).all():
                return math.inf
            error = (made - wanted).abs() / (wanted.abs() + wanted.abs().mean())
            worst = max(worst, float(error.max()))
    return worst


def main() -> None:
    composition = composition_of(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        found = [
            None if program.hack is Hack.COMPILED else _outcome(program, Path(name), number)
            for number, program in enumerate(census(composition))
        ]
    print(json.dumps([None if item is None else str(item) for item in found]))


if __name__ == "__main__":
    main()
