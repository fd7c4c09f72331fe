"""`make gpu-bars`: run one bar of a GPU, print its table, and write JSON to the folder `OUT`.

`KERNELBENCH` names the file with KernelBench's problems, one JSON line each. `aa`, `delta`,
`agreement`, `integrations` and `large` read it. `LIGER` names the folder of liger-kernel, for
`liger`. `DONE` names files of rows that earlier runs of `attacks` wrote, and `SEED` the seed of its
generators. `STUDY` names the folder of files that an earlier slice of `nano` left.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from benchmarks.attacks import corpus, red_team
from benchmarks.bars import Bar, finish
from benchmarks.gpu import (
    aa,
    agreement,
    builds,
    coverage,
    faults,
    integrations,
    known_delays,
    large_references,
    liger,
    memory,
    nano_study,
    paged_sampling,
    scaling,
    search_context,
    smoke,
    throughput,
    training_step,
)
from benchmarks.gpu.requests import DEVICE, SHARD, SHARDS

OUTPUT_ONLY = {
    "stream": throughput.run,
    "builds": builds.run,
    "coverage": coverage.run,
    "faults": faults.run,
    "liger": liger.run,
    "memory": memory.run,
    "climb": search_context.run,
    "train": training_step.run,
    "paged": paged_sampling.run,
}
"""Bars of which `run` takes the output folder."""
WITH_PROBLEMS = {
    "aa": aa.run,
    "delta": known_delays.run,
    "agreement": agreement.run,
    "integrations": integrations.run,
    "large": large_references.run,
}
"""Bars of which `run` also takes the file of problems and a time limit."""
PARTS = ("smoke", "corpus", "attacks", "calibrate", "scale", "nano", *OUTPUT_ONLY, *WITH_PROBLEMS)


def main() -> int:
    """Run one part, print its table, and return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--match", default="", help="only items whose name contains this")
    parser.add_argument(
        "--seconds",
        type=float,
        default=400.0,
        help="time limit of aa, delta, agreement, integrations, large, attacks and nano",
    )
    parser.add_argument("--merge", nargs="+", type=Path, help="JSON files of runs of aa or liger")
    parser.add_argument("--cpu", action="store_true", help="scale: rehearse it without a GPU")
    options = parser.parse_args()
    out = Path(os.environ.get("OUT", "out"))
    out.mkdir(parents=True, exist_ok=True)
    if options.part == "calibrate" and not options.merge:
        parser.error("calibrate needs runs of aa: --merge FILE ...")
    if options.part == "scale":
        bars = scaling.run(out, cpu=options.cpu)
    elif options.merge:
        bars = _merged(options.part, options.merge)
    else:
        bars = _bars(options.part, options.match, options.seconds, out)
    document = [bar.__dict__ for bar in bars]
    (out / f"gpu_{options.part}_bars.json").write_text(json.dumps(document), encoding="utf-8")
    return finish(bars)


def _merged(part: str, files: list[Path]) -> list[Bar]:
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    if part == "calibrate":
        return aa.calibrate(rows)
    return liger.bars(rows) if part == "liger" else aa.bars(aa.runs_of(rows))


def _bars(part: str, match: str, seconds: float, out: Path) -> list[Bar]:
    if part == "smoke":
        return smoke.run(match, out)
    if part == "corpus":
        return corpus.run_on(DEVICE, match)
    if part == "attacks":
        return red_team.run_on(DEVICE, match, seconds, out, (SHARD, SHARDS))
    if part == "nano":
        return nano_study.run(out, seconds)
    if part in OUTPUT_ONLY:
        return OUTPUT_ONLY[part](out)
    return WITH_PROBLEMS[part](
        Path(os.environ.get("KERNELBENCH", "kernelbench.jsonl")), seconds, out
    )


if __name__ == "__main__":
    sys.exit(main())
