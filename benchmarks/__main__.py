"""`make bars`: run the bars of a CPU, print their table, and exit with 1 if one is missed."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from benchmarks.bars import Bar, finish

BARS = {
    "corpus": "attacks.corpus",
    "attacks": "attacks.red_team",
    "telling_calls": "attacks.telling_calls",
    "planted_bugs": "attacks.planted_bugs.bar",
    "faults": "faults.evaluations",
    "aa": "accuracy.aa",
    "tolerance": "accuracy.tolerance_power",
    "cost": "accuracy.judging_cost",
    "bundled_cost": "accuracy.bundled_cost",
    "message_cost": "accuracy.message_cost",
    "fuzz": "attacks.fuzz",
    "bad_input": "faults.bad_input",
    "bench_kills": "faults.bench_kills",
    "host_kills": "faults.host_kills",
    "study_kills": "faults.study_kills",
    "recipe_kills": "faults.recipe_kills",
    "loggers": "faults.failing_loggers",
    "pytest": "accuracy.pytest_regressions",
    "eval_wait": "accuracy.eval_wait",
    "reports": "search.report_page",
    "loop": "search.loop_cost",
    "synth": "search.synthetic",
    "climb": "search.context",
    "systems": "search.systems",
    "races": "search.live_races",
    "serve": "serve.load",
    "dashboard": "serve.dashboard",
    "serve_faults": "serve.faults",
    "serve_hostile": "serve.hostile_client",
    "data": "training.data_rows",
    "nano": "training.nano",
    "recipes": "training.recipes",
    "train": "training.cpu_training",
    "engines": "training.engines",
}
"""The module of each bar, by the name that `--only` takes. Its function `run` measures the bar."""


def main() -> int:
    """Run the chosen bars, print their table and write `bars.json`; return 1 if one is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help=f"one of: {', '.join(BARS)}")
    parser.add_argument("--match", default="", help="run only the items of a bar that contain this")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    chosen = [name for name in BARS if options.only in ("", name)]
    if not chosen:
        parser.error(f"no bar {options.only!r}; known: {', '.join(BARS)}")
    bars: list[Bar] = []
    for name in chosen:
        start = time.monotonic()
        print(f"== {name}", flush=True)
        bars += importlib.import_module(f"benchmarks.{BARS[name]}").run(options.match)
        print(f"== {name}: {time.monotonic() - start:.0f} s", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    document = [bar.__dict__ for bar in bars]
    (options.out / "bars.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    return finish(bars)


if __name__ == "__main__":
    sys.exit(main())
