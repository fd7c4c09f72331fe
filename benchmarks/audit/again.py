"""Ten cells, chosen by a seed, are judged again: on another day, or on another machine."""

from __future__ import annotations

import time
from functools import partial

from benchmarks.audit.results import Results
from benchmarks.audit.run import Place, Plan, chosen, compile_group, judge_group, note
from benchmarks.audit.summary import again_cells, repeats
from tilewright.executors.local import LocalExecutor


def measure_again(plan: Plan, results: Results, place: Place, seed: int) -> bool:
    """Judge the cells again; tell whether all of them have a second result."""
    until = time.monotonic() + plan.seconds
    names = again_cells(results.rows, seed)
    print(f"seed {seed}: {', '.join(names)}", flush=True)
    known = results.known("again")
    cells = [cell for cell in chosen(plan, results) if cell.id in names and cell.id not in known]
    if "compile" in plan.stages:
        compile_group(cells, plan, results, place, until)
    with LocalExecutor(place.home, plan.workers) as local:
        judge_group(cells, plan, place, local, until, partial(note, results, "again"))
    for cell, first, second, same in repeats(results.rows):
        ends = [(row.get("against") or {}).get("eager") for row in (first, second)]
        print(f"{cell}: {'agrees' if same else 'DIFFERS'} {ends[0]} {ends[1]}", flush=True)
    return set(names) <= results.known("again")
