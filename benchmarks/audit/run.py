"""One slice of a run: what is left of each stage, until the time is over.

The cells go through the stages in groups. A slice that ends early leaves whole groups, and the
next one goes on with the results file, on this machine or on another.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.audit.cells import Cell, all_cells
from benchmarks.audit.common_timer import time_candidate
from benchmarks.audit.compilation import (
    COMPILED,
    compile_candidate,
    compile_reference,
    pack_kernels,
)
from benchmarks.audit.installed import find
from benchmarks.audit.judging import Done, Prepared, judge_all, request_of
from benchmarks.audit.libraries import LIBRARIES, Library
from benchmarks.audit.plain_calls import Job
from benchmarks.audit.processes import run_all
from benchmarks.audit.results import Results
from benchmarks.audit.summary import all_short
from tilewright.executors.local import LocalExecutor

STAGES = ("compile", "do_bench", "judge")
COMPILE_S = 90.0
"""Most seconds to compile one reference or candidate; a tuner may need all of them."""
BENCH_S = 200.0
"""Most seconds of one process, most of which it waits for the others to leave the GPU."""
BENCH_AT_ONCE = 12
"""Processes that import libraries together, and then use the GPU one after another."""


@dataclass(frozen=True)
class Plan:
    """What a slice does."""

    libraries: tuple[Library, ...] = tuple(LIBRARIES.values())
    folders: tuple[str, ...] = ()
    """Folders that hold the libraries."""
    stages: tuple[str, ...] = STAGES
    device: str = "cuda"
    workers: int = 5
    compilers: int = 12
    group: int = 40
    """Cells that go through all stages before the next ones begin."""
    seconds: float = 540.0
    settings: tuple[str, ...] = ()
    shard: tuple[int, int] = (0, 1)
    """Which part of the problems this slice judges, and the number of parts."""


@dataclass(frozen=True)
class Place:
    """Folders of a slice, which candidates must be able to read."""

    work: Path
    home: Path

    def folder(self, name: str) -> Path:
        """Return a folder for a cell or a problem, readable for all."""
        made = self.work / name.replace("/", "--")
        for path in (self.work, made):
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o755)
        return made


def chosen(plan: Plan, results: Results) -> list[Cell]:
    """Return the cells of the libraries that can be judged; note every library in the results."""
    found = [find(library, plan.folders) for library in plan.libraries]
    for each in found:
        if each.row() not in results.rows:
            results.add(each.row())
        if each.reason:
            print(f"left out: {each.reason}", flush=True)
    return all_cells([each.library for each in found if not each.reason])


def run(plan: Plan, results: Results, place: Place) -> bool:
    """Do what is left; tell whether nothing is left."""
    until = time.monotonic() + plan.seconds
    cells = chosen(plan, results)
    cells = of_shard(cells, plan, results)
    left = [cell for cell in cells if _missing(cell, plan, results)]
    print(f"{len(cells)} cells, {len(left)} of them left", flush=True)
    # One for all groups, because a supervisor takes long to start.
    with LocalExecutor(place.home, plan.workers) as local:
        for group in _groups(left, plan.group):
            if time.monotonic() > until - 30:
                break
            _stages(group, plan, results, place, local, until)
    return not any(_missing(cell, plan, results) for cell in cells)


def of_shard(cells: Sequence[Cell], plan: Plan, results: Results) -> list[Cell]:
    """Return every n-th problem that had cells left, with all of its cells."""
    part, parts = plan.shard
    left = dict.fromkeys(cell.problem_id for cell in cells if _missing(cell, plan, results))
    taken = set(list(left)[part::parts])
    return [cell for cell in cells if cell.problem_id in taken]


def _groups(cells: Sequence[Cell], size: int) -> Iterator[list[Cell]]:
    waiting = iter(cells)
    while group := list(itertools.islice(waiting, size)):
        yield group


def _missing(cell: Cell, plan: Plan, results: Results) -> list[str]:
    known = {
        "do_bench": results.known("do_bench") | all_short(results.rows),
        "judge": results.known("cell"),
    }
    return [
        stage for stage, cells in known.items() if stage in plan.stages and cell.id not in cells
    ]


def _stages(
    group: Sequence[Cell],
    plan: Plan,
    results: Results,
    place: Place,
    local: LocalExecutor,
    until: float,
) -> None:
    began = time.monotonic()
    if "compile" in plan.stages:
        compile_group(group, plan, results, place, until)
    compiled = time.monotonic()
    if "do_bench" in plan.stages:
        _time(group, plan, results, place, until)
    timed = time.monotonic()
    if "judge" in plan.stages:
        known = results.known("cell")
        left = [cell for cell in group if cell.id not in known]
        judge_group(left, plan, place, local, until, partial(note, results, "cell"))
    print(
        f"group of {len(group)}: compiled in {compiled - began:.0f} s, do_bench "
        f"{timed - compiled:.0f} s, judged {time.monotonic() - timed:.0f} s",
        flush=True,
    )


def judge_group(
    cells: Sequence[Cell],
    plan: Plan,
    place: Place,
    local: LocalExecutor,
    until: float,
    done: Done,
) -> None:
    """Judge cells with what the stage before has stored for them."""
    stored = "compile" in plan.stages
    items = [
        (
            cell,
            request_of(
                cell,
                _stored(cell, place) if stored else Prepared(),
                plan.folders,
                plan.device,
                plan.settings,
            ),
        )
        for cell in cells
    ]
    judge_all(items, local, plan.workers, until, done)


def note(results: Results, kind: str, cell: Cell, found: dict[str, Any]) -> None:
    """Append the row of a judged cell, and print it."""
    results.add({"kind": kind, "cell": cell.id, **found})
    eager = (found.get("against") or {}).get("eager")
    print(f"{cell.id}: {found.get('verdict')} {eager or found.get('message')}", flush=True)


def compile_group(
    group: Sequence[Cell], plan: Plan, results: Results, place: Place, until: float
) -> None:
    """Compile the kernels and the references of a group, as far as time allows."""
    problems = {cell.problem_id: cell for cell in group}
    references = [
        cell
        for name, cell in problems.items()
        if not (place.folder(name) / COMPILED).exists() and not _failed(results, name)
    ]
    jobs = [_job(cell, cell.problem_id, plan, place) for cell in references]
    kernels = [_job(cell, cell.id, plan, place) for cell in group]
    # Together, so that no processor waits for the slowest of the first kind.
    work = partial(run_all, at_once=plan.compilers, limit_s=COMPILE_S, until=until - 30)
    answers = work(_either, [*jobs, *kernels])
    for cell, found in zip(references, answers, strict=False):
        if cell.problem_id not in results.known("compile") and "skipped" not in found:
            results.add({"kind": "compile", "cell": cell.problem_id, **found})
    for cell, found in zip(group, answers[len(jobs) :], strict=True):
        if cell.id not in results.known("kernels") and "skipped" not in found:
            results.add({"kind": "kernels", "cell": cell.id, **found})


def _either(job: Job) -> None:
    """Compile a candidate, or the reference where the job has no candidate."""
    (compile_candidate if job.candidate else compile_reference)(job)


def _failed(results: Results, problem: str) -> bool:
    return any(
        row["kind"] == "compile" and row["cell"] == problem and "error" in row
        for row in results.rows
    )


def _job(cell: Cell, name: str, plan: Plan, place: Place, answer: str = "answer.json") -> Job:
    folder = place.folder(name)
    kind, _, number = plan.device.partition(":")
    return Job(
        problem=cell.problem(),
        candidate=cell.candidate() if name == cell.id else "",
        folders=plan.folders,
        answer=str(folder / answer),
        device=kind,
        gpu=number,
        caches=str(folder / "caches"),
        lock=str(place.work / "gpu.lock"),
        names=tuple(cell.operator.names.split(", ")),
        tf32=cell.dtype == "fp32",
    )


def _time(group: Sequence[Cell], plan: Plan, results: Results, place: Place, until: float) -> None:
    known = results.known("do_bench") | all_short(results.rows)
    left = [cell for cell in group if cell.id not in known]
    # All processes of a wave import before the first one times, so that the host is quiet.
    for start in range(0, len(left), BENCH_AT_ONCE):
        wave = left[start : start + BENCH_AT_ONCE]
        jobs = [_job(cell, cell.id, plan, place, "do_bench.json") for cell in wave]
        answers = run_all(time_candidate, jobs, BENCH_AT_ONCE, BENCH_S, until - 20)
        for cell, found in zip(wave, answers, strict=True):
            if "skipped" not in found:
                results.add({"kind": "do_bench", "cell": cell.id, **found})


def _stored(cell: Cell, place: Place) -> Prepared:
    folder = place.folder(cell.id)
    kernels = folder / "kernels"
    packed = kernels.is_dir() or pack_kernels(folder / "caches", kernels)
    compiled = place.folder(cell.problem_id)
    for path in (kernels, compiled):
        _readable(path)
    return Prepared(
        kernels if packed else None, compiled if (compiled / COMPILED).exists() else None
    )


def _readable(folder: Path) -> None:
    """Let candidates read a folder: each is a user of its own."""
    if folder.is_dir():
        folder.chmod(0o755)
        for path in folder.glob("*"):
            if path.is_file():
                path.chmod(0o644)


def libraries_folders() -> tuple[str, ...]:
    """Return the folders of the variable `AUDIT_LIBRARIES`, with colons between."""
    return tuple(filter(None, os.environ.get("AUDIT_LIBRARIES", "").split(os.pathsep)))
