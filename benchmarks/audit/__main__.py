"""`make audit`: judge the kernels of installed libraries, and make the pages of the results.

`AUDIT_LIBRARIES` names the folders that hold the libraries, with colons between.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.audit.again import measure_again
from benchmarks.audit.cells import all_cells
from benchmarks.audit.libraries import LIBRARIES, Library
from benchmarks.audit.page import write_pages
from benchmarks.audit.reproducers import write_reproducers
from benchmarks.audit.results import Results, merge, read
from benchmarks.audit.run import STAGES, Place, Plan, libraries_folders, run
from benchmarks.audit.summary import table

RESULTS = "audit.jsonl"


def main() -> int:
    """Run one command; return 1 if cells are left."""
    options = _options()
    if options.command == "list":
        for cell in all_cells(_chosen(options.library)):
            print(cell.id, *(case["name"] for case in cell.operator.cases))
        return 0
    if options.command == "page":
        write_pages(read(options.results), options.out, options.results.name)
        return 0
    if options.command == "reproducers":
        for path in write_reproducers(read(options.results), options.out):
            print(path)
        return 0
    if options.command == "merge":
        print(table(merge(options.results, options.out)))
        return 0
    return _measure(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parts = parser.add_subparsers(dest="command", required=True)
    parts.add_parser("list", help="list all cells, and judge none")
    for name, text in (("run", "judge what is left"), ("again", "judge ten cells again")):
        part = parts.add_parser(name, help=text)
        part.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "out/audit")))
        part.add_argument("--resume", type=Path, help="the results of earlier slices")
        part.add_argument("--seconds", type=float, default=540.0, help="length of the slice")
        part.add_argument("--workers", type=int, default=5, help="evaluations at once")
        part.add_argument("--compilers", type=int, default=max(2, (os.cpu_count() or 2) - 2))
        part.add_argument("--group", type=int, default=40, help="cells between two savings")
        part.add_argument("--shard", default=os.environ.get("SHARD", "0/1"), metavar="PART/PARTS")
        part.add_argument("--skip", action="append", default=[], choices=STAGES)
        part.add_argument("--redo", action="append", default=[], metavar="CELL", help="judge anew")
        part.add_argument("--device", default=os.environ.get("DEVICE", "cuda"))
        part.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
        part.add_argument("--seed", type=int, default=41, help="chooses the cells of `again`")
    for part in parts.choices.values():
        part.add_argument("--library", action="append", default=[], choices=sorted(LIBRARIES))
    for name, text in (("page", "write the pages"), ("reproducers", "write the reproducers")):
        part = parts.add_parser(name, help=text)
        part.add_argument("results", type=Path)
        part.add_argument("out", type=Path)
    part = parts.add_parser("merge", help="make one file of the results of several slices")
    part.add_argument("out", type=Path)
    part.add_argument("results", type=Path, nargs="+")
    return parser.parse_args()


def _chosen(names: list[str]) -> list[Library]:
    return [library for name, library in LIBRARIES.items() if not names or name in names]


def _measure(options: argparse.Namespace) -> int:
    began = time.monotonic()
    results = Results(options.out / RESULTS, options.resume)
    results.drop("cell", options.redo)
    results.add(_header(options))
    # Slices on several GPUs of one machine share nothing.
    part, _, parts = options.shard.partition("/")
    temporary = Path(tempfile.gettempdir()) / f"tilewright-audit-{part}"
    place = Place(temporary / "work", temporary / "home")
    plan = Plan(
        libraries=tuple(_chosen(options.library)),
        folders=libraries_folders(),
        stages=tuple(stage for stage in STAGES if stage not in options.skip),
        device=options.device,
        workers=options.workers,
        compilers=options.compilers,
        group=options.group,
        seconds=options.seconds,
        settings=tuple(options.set),
        shard=(int(part), int(parts)),
    )
    done = (
        measure_again(plan, results, place, options.seed)
        if options.command == "again"
        else run(plan, results, place)
    )
    print("\n" + table(results.rows))
    print(f"{'complete' if done else 'cells are left'} after {time.monotonic() - began:.0f} s")
    return 0 if done else 1


def _header(options: argparse.Namespace) -> dict[str, object]:
    """Return the row of a slice: when, by which command, at which commit."""
    commit = os.environ.get("COMMIT", "")
    if not commit:
        asked = ["git", "rev-parse", "--short=8", "HEAD"]
        commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    again = options.command == "again"
    words = [
        options.command,
        *(f"--library {name}" for name in options.library),
        *(f"--skip {stage}" for stage in options.skip),
        *(f"--redo {cell}" for cell in options.redo),
        *([f"--seed {options.seed}"] if again else []),
    ]
    return {
        "kind": "slice",
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "command": "python -m benchmarks.audit " + " ".join(words),
        "commit": commit,
        "seed": options.seed if again else None,
    }


if __name__ == "__main__":
    sys.exit(main())
