"""Bars on a GPU: `python -m benchmarks.gpu smoke|aa|delta|...`; JSON goes to the folder `OUT`.

`aa`, `delta` and `agreement` read KernelBench's problems, a JSON line each, from the file that
`KERNELBENCH` names. `liger` needs the folder of that package in `LIGER`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from benchmarks.attacks import corpus
from benchmarks.bars import Bar
from benchmarks.gpu import (
    aa,
    agreement,
    builds,
    coverage,
    faults,
    known_delays,
    liger,
    memory,
    scaling,
    search_context,
    smoke,
    throughput,
    training_step,
)

PLAIN = {
    "stream": throughput.run,
    "builds": builds.run,
    "coverage": coverage.run,
    "faults": faults.run,
    "liger": liger.run,
    "memory": memory.run,
    "climb": search_context.run,
    "train": training_step.run,
}
TIMED = {"aa": aa.run, "delta": known_delays.run, "agreement": agreement.run}
PARTS = ("smoke", "corpus", "calibrate", "scale", *PLAIN, *TIMED)


def main() -> int:
    """Run one part, print its table, and return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--match", default="", help="only what contains this in its name")
    parser.add_argument("--seconds", type=float, default=400.0, help="how long aa and delta go on")
    parser.add_argument("--merge", nargs="+", type=Path, help="JSON of parts of aa or liger")
    parser.add_argument("--cpu", action="store_true", help="scale: see that it runs, without GPUs")
    options = parser.parse_args()
    out = Path(os.environ.get("OUT", "out"))
    out.mkdir(parents=True, exist_ok=True)
    if options.part == "calibrate" and not options.merge:
        parser.error("calibrate takes the runs of aa: --merge FILE ...")
    if options.part == "scale":
        bars = scaling.run(out, cpu=options.cpu)
    elif options.merge:
        bars = _merged(options.part, options.merge)
    else:
        bars = _bars(options.part, options.match, options.seconds, out)
    print("\nbar | wanted | seen | held\n--- | --- | --- | ---")
    for bar in bars:
        print(bar.row())
    document = [bar.__dict__ for bar in bars]
    (out / f"gpu_{options.part}_bars.json").write_text(json.dumps(document), encoding="utf-8")
    return 0 if all(bar.held for bar in bars) else 1


def _merged(part: str, files: list[Path]) -> list[Bar]:
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    if part == "calibrate":
        return aa.calibrate(rows)
    return liger.bars(rows) if part == "liger" else aa.bars(aa.runs_of(rows))


def _bars(part: str, match: str, seconds: float, out: Path) -> list[Bar]:
    if part == "smoke":
        return smoke.run(match, out)
    if part == "corpus":
        return corpus.run_on("cuda", match)
    if part in PLAIN:
        return PLAIN[part](out)
    return TIMED[part](Path(os.environ.get("KERNELBENCH", "kernelbench.jsonl")), seconds, out)


if __name__ == "__main__":
    sys.exit(main())
