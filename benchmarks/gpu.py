"""Bars on a GPU: `python -m benchmarks.gpu smoke|aa|delta|corpus`; JSON goes to the folder `OUT`.

`aa` and `delta` want the path of KernelBench's problems, a JSON line each, in `KERNELBENCH`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from benchmarks import corpus, gpu_aa, gpu_delta, gpu_smoke
from benchmarks.bars import Bar

PARTS = ("smoke", "aa", "delta", "corpus")


def main() -> int:
    """Run one part, print its table, and return 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--match", default="", help="only what contains this in its name")
    parser.add_argument("--seconds", type=float, default=400.0, help="how long aa and delta go on")
    options = parser.parse_args()
    out = Path(os.environ.get("OUT", "out"))
    out.mkdir(parents=True, exist_ok=True)
    bars = _bars(options.part, options.match, options.seconds, out)
    print("\nbar | wanted | seen | held\n--- | --- | --- | ---")
    for bar in bars:
        print(bar.row())
    document = [bar.__dict__ for bar in bars]
    (out / f"gpu_{options.part}_bars.json").write_text(json.dumps(document), encoding="utf-8")
    return 0 if all(bar.held for bar in bars) else 1


def _bars(part: str, match: str, seconds: float, out: Path) -> list[Bar]:
    if part == "smoke":
        return gpu_smoke.run(match, out)
    if part == "corpus":
        return corpus.run_on("cuda", match)
    path = Path(os.environ.get("KERNELBENCH", "kernelbench.jsonl"))
    if part == "delta":
        return gpu_delta.run(path, seconds, out)
    return gpu_aa.run(path, seconds, out)


if __name__ == "__main__":
    sys.exit(main())
