"""`make bars`: run the bars that this machine can, print their table, exit 1 on a miss."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from benchmarks.bars import Bar

BARS = {
    "corpus": "attacks.corpus",
    "planted_bugs": "attacks.planted_bugs.bar",
    "faults": "faults.evaluations",
    "aa": "accuracy.aa",
    "cost": "accuracy.judging_cost",
    "message_cost": "accuracy.message_cost",
    "fuzz": "attacks.fuzz",
    "bad_input": "faults.bad_input",
    "bench_kills": "faults.bench_kills",
    "reports": "search.report_page",
    "loop": "search.loop_cost",
    "synth": "search.synthetic",
    "climb": "search.context",
    "serve": "serve.load",
    "serve_faults": "serve.faults",
    "serve_hostile": "serve.hostile_client",
    "data": "training.data_rows",
    "train": "training.cpu_training",
}
"""The modules of the bars, by the names that `--only` takes."""


def main() -> int:
    """Run the chosen bars and write their table and a JSON beside it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help=f"one of: {', '.join(BARS)}")
    parser.add_argument("--match", default="", help="run only the items of a bar that contain this")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    chosen = [name for name in BARS if options.only in ("", name)]
    if not chosen:
        parser.error(f"no bar {options.only!r}; known: {', '.join(BARS)}")
    held: list[Bar] = []
    for name in chosen:
        start = time.monotonic()
        print(f"== {name}", flush=True)
        held += importlib.import_module(f"benchmarks.{BARS[name]}").run(options.match)
        print(f"== {name}: {time.monotonic() - start:.0f} s", flush=True)
    print("\nbar | wanted | seen | held\n--- | --- | --- | ---")
    for bar in held:
        print(bar.row())
    options.out.mkdir(parents=True, exist_ok=True)
    document = [bar.__dict__ for bar in held]
    (options.out / "bars.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    return 0 if all(bar.held for bar in held) else 1


if __name__ == "__main__":
    sys.exit(main())
