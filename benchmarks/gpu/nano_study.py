"""Bars of the study `nano` on a GPU, a slice at a time: census, gate, and seconds of a step.

    make gpu-bars PART=nano
    STUDY=pack-of-the-last-slice make gpu-bars PART=nano
    python -m benchmarks.gpu.nano_study FOLDER

A slice evaluates programs of the census for `--seconds`. Once none is left, the rest of the time
belongs to `train study nano.yaml`. The slice leaves the study in `OUT` as few files. `STUDY` names
the folder of such files, which the next slice continues. The third form draws the bars of gate and
steps of a study's folder, and runs nothing.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.bars import Bar, finish
from benchmarks.gpu.requests import DEVICE
from tilewright.families.nano.problem_files import compositions_of
from tilewright.families.nano.program_slots import ProgramPlan, census
from tilewright.families.nano.program_text import render
from tilewright.rl.stage_runner import seconds_of
from tilewright.rl.study.packing import NAME, pack
from tilewright.rl.study.study_folder import STORE, StudyFolder, read_study
from tilewright.rl.study.study_log import study_log
from tilewright.rl.verdict_store import StoredVerdict, VerdictStore

STUDY = "nano.yaml"
WORKERS = os.environ.get("WORKERS", "6")
"""Programs that are evaluated at the same time: compilers keep the device waiting."""
PROGRAMS = 430
"""Programs of which the census must have verdicts."""
SPREAD = 0.015
"""Largest median of the absolute log ratios of a program's two speed-ups."""
EXPECTED = {
    ProgramPlan.FUSED: ("correct",),
    ProgramPlan.SPLIT: ("correct",),
    ProgramPlan.LAZY: ("correct",),
    ProgramPlan.WRONG: ("incorrect",),
    ProgramPlan.BROKEN: ("failed", "incorrect"),
    ProgramPlan.HACK: ("rejected",),
}
"""Verdicts that a program of each plan may get."""

Programs = dict[tuple[str, str], ProgramPlan]


def run(out: Path, seconds: float) -> list[Bar]:
    """Continue census and study for about `seconds`, leave a pack in `out`, and return the bars."""
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "study"
        folder.mkdir()
        earlier = os.environ.get("STUDY", "")
        if earlier:
            command = f"cat {Path(earlier).resolve()}/{NAME}* | tar xz -C {folder}"
            subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], check=True)
        found = _take_census(folder / STORE, until)
        # Both groups are in the store before the study begins, which needs one of them.
        minutes = int((until - time.monotonic()) / 60)
        if minutes >= 1 and found[-1].held:
            words = ["train", "study", STUDY, "--out", str(folder), "--minutes", str(minutes)]
            # A gate that fails ends with status 1, and its lines are among the bars.
            status = subprocess.run([sys.executable, "-m", "tilewright", *words]).returncode
            found.append(Bar("nano: invocation", "exit status 0", str(status), status == 0))
            found += bars_of(read_study(folder))
        for part in pack(folder):
            (out / part.name).write_bytes(part.read_bytes())
        return found


def _take_census(store: Path, until: float) -> list[Bar]:
    """Evaluate what the store lacks; return the bars, of which the last one holds at the end."""
    began, minutes = time.monotonic(), max(int((until - time.monotonic()) / 60), 1)
    words = ["data", "verdicts", "nano", "--to", str(store), "--minutes", str(minutes)]
    words += ["--workers", WORKERS, "--device", DEVICE, "--json"]
    command = [sys.executable, "-m", "tilewright", *words]
    done = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    found = census_bars(list(VerdictStore.read(store).rows()), census_of(), left=done["left"])
    if done["evaluated"]:
        each = f"{(time.monotonic() - began) / done['evaluated']:.2f}"
        found.insert(0, Bar("nano: seconds of a program", "printed", each, True))
    return [*found, Bar("nano: census", "no program left", f"{done['left']}", not done["left"])]


def bars_of(folder: StudyFolder) -> list[Bar]:
    """Return the bars of gate and steps, as far as the study has come."""
    log = study_log(folder, seconds_of(folder.path))
    gate = [
        Bar(f"nano: gate, {row['name']}", row["wanted"], f"{row['seen']}", row["held"])
        for row in log["gate"]
    ]
    return [*gate, *_step_bars(log)]


def census_of() -> Programs:
    """Return the plan of each program of the census, by problem and canonical text."""
    return {
        (item.id, render(program)): program.plan
        for item in compositions_of("")
        for program in census(item)
    }


def census_bars(rows: Sequence[StoredVerdict], wanted: Programs, *, left: int) -> list[Bar]:
    """Return the bars over the stored verdicts of a census.

    A program without a verdict is unjudged, unless it is one of those that are `left`.
    """
    verdicts = {
        program: [row.summary.verdict for row in found] for program, found in _by_program(rows)
    }
    unjudged = len(wanted.keys() - verdicts.keys()) - left
    missed = [
        f"{problem} ({plan}): {', '.join(verdicts[problem, code])}"
        for (problem, code), plan in wanted.items()
        if not set(verdicts.get((problem, code), ())) <= set(EXPECTED[plan])
    ]
    print("\n".join(missed))
    plans = Counter(wanted[program] for program in verdicts if program in wanted)
    shown = ", ".join(f"{plan} {count}" for plan, count in sorted(plans.items()))
    ratios = sorted(_log_ratios(rows))
    spread = statistics.median(ratios) if ratios else math.inf
    worst = f"; worst {100 * ratios[-1]:.2f} %, of {len(ratios)}" if ratios else ""
    return [
        Bar(
            "nano: programs with a verdict",
            f"at least {PROGRAMS}",
            f"{len(verdicts)}: {shown}",
            len(verdicts) >= PROGRAMS,
        ),
        Bar("nano: unjudged programs", "0", f"{unjudged}", not unjudged),
        Bar(
            "nano: verdicts",
            "those of the plans",
            f"{len(missed)} others",
            not missed,
            {"missed": missed},
        ),
        Bar(
            "nano: two speed-ups of a program",
            f"median within {100 * SPREAD:g} %",
            f"{100 * spread:.2f} %{worst}" if ratios else "no program has two",
            spread <= SPREAD,
        ),
    ]


def _by_program(
    rows: Sequence[StoredVerdict],
) -> Iterator[tuple[tuple[str, str], list[StoredVerdict]]]:
    key = lambda row: (row.problem, row.code)  # noqa: E731
    for program, found in groupby(sorted(rows, key=key), key):
        yield program, list(found)


def _log_ratios(rows: Sequence[StoredVerdict]) -> Iterator[float]:
    """Yield the absolute log ratio of the first two speed-ups of each program that has two."""
    for _, found in _by_program(rows):
        speedups = [row.summary.speedup for row in found if row.summary.speedup]
        if len(speedups) > 1:
            yield abs(math.log(speedups[1] / speedups[0]))


def _step_bars(log: dict[str, object]) -> Iterator[Bar]:
    """Yield the seconds of a step of each trained arm, with the start of its process."""
    seconds, arms = log["seconds"], log["arms"]
    assert isinstance(seconds, dict)
    assert isinstance(arms, dict)
    for name, seeds in arms.items():
        for seed, arm in seeds.items():
            took = seconds.get(f"arm {name}, seed {seed}")
            if took is not None and arm["figures"]:
                each = f"{took / len(arm['figures']):.1f}"
                yield Bar(f"nano: seconds of a step, {name} {seed}", "printed", each, True)


if __name__ == "__main__":
    sys.exit(finish(bars_of(read_study(Path(sys.argv[1])))))
