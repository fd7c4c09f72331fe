"""Bars on a GPU: `python -m benchmarks.gpu smoke|aa|delta|...`; JSON goes to the folder `OUT`.

`aa`, `delta` and `agreement` want the path of KernelBench's problems, a JSON line each, in
`KERNELBENCH`; `liger` wants the folder of that package in `LIGER`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from benchmarks import (
    corpus,
    gpu_aa,
    gpu_agreement,
    gpu_builds,
    gpu_climb,
    gpu_coverage,
    gpu_delta,
    gpu_faults,
    gpu_liger,
    gpu_memory,
    gpu_scale,
    gpu_smoke,
    gpu_stream,
    gpu_train,
)
from benchmarks.bars import Bar

PLAIN = {
    "stream": gpu_stream.run,
    "builds": gpu_builds.run,
    "coverage": gpu_coverage.run,
    "faults": gpu_faults.run,
    "liger": gpu_liger.run,
    "memory": gpu_memory.run,
    "climb": gpu_climb.run,
    "train": gpu_train.run,
}
TIMED = {"aa": gpu_aa.run, "delta": gpu_delta.run, "agreement": gpu_agreement.run}
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
        bars = gpu_scale.run(out, cpu=options.cpu)
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
        return gpu_aa.calibrate(rows)
    return gpu_liger.bars(rows) if part == "liger" else gpu_aa.bars(gpu_aa.runs_of(rows))


def _bars(part: str, match: str, seconds: float, out: Path) -> list[Bar]:
    if part == "smoke":
        return gpu_smoke.run(match, out)
    if part == "corpus":
        return corpus.run_on("cuda", match)
    if part in PLAIN:
        return PLAIN[part](out)
    return TIMED[part](Path(os.environ.get("KERNELBENCH", "kernelbench.jsonl")), seconds, out)


if __name__ == "__main__":
    sys.exit(main())
