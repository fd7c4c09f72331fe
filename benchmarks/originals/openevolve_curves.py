"""The best program of OpenEvolve 0.4.1 on SynthKernel-1, after some numbers of evaluations.

The driver repeats the steps of the original's controller around an unmodified `ProgramDatabase`:
draw for the next island, evaluate a random unit move of the parent, add it there, migrate when it
is time. The search begins with the reference, which is not counted. Wrong programs score 0.

    make originals ORIGINALS=path/to/python
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import random
import statistics
import sys
import uuid
from pathlib import Path
from typing import Any

from benchmarks.originals.openevolve import VERSION, installed
from benchmarks.search.landscapes import moves, speedup_of
from tilewright.testing.synth import REFERENCE, Program, parse, render

MEASURED = Path(__file__).resolve().parents[1] / "search" / "openevolve_curves.json"
HORIZONS = (50, 100, 200, 500)
SEEDS = 100
INSPIRATIONS = 2
"""As the controller draws them: `num_diverse_programs`."""
SETTINGS: dict[str, dict[str, int]] = {
    "defaults": {},
    "three_islands": {"num_islands": 3, "migration_interval": 10},
}


def best_so_far(seed: int, options: dict[str, int]) -> list[float]:
    """Run one search; return its best speed-up at each horizon."""
    module: Any = importlib.import_module("openevolve.database")
    config: Any = importlib.import_module("openevolve.config")
    base = module.ProgramDatabase(config.DatabaseConfig(random_seed=seed, **options))
    draws = random.Random(f"{seed}/moves")

    def program(fields: Program) -> Any:  # noqa: ANN401 - a class of the original
        score = speedup_of(fields) or 0.0
        metrics = {"combined_score": score}
        return module.Program(id=str(uuid.uuid4()), code=render(fields), metrics=metrics)

    base.add(program(REFERENCE))
    best, curve = 0.0, []
    for number in range(1, HORIZONS[-1] + 1):
        island = (number - 1) % len(base.islands)
        parent, _ = base.sample_from_island(island, INSPIRATIONS)
        fields = parse(parent.code)
        if isinstance(fields, str):
            raise TypeError(fields)
        child = program(draws.choice(moves(fields)))
        base.add(child, iteration=number, target_island=island)
        base.increment_island_generation(island)
        if base.should_migrate():
            base.migrate_programs()
        best = max(best, child.metrics["combined_score"])
        if number in HORIZONS:
            curve.append(best)
    return curve


def main() -> int:
    """Measure both settings, and write the means with their standard errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    if not installed():
        return 0
    logging.getLogger("openevolve").setLevel(logging.CRITICAL)
    rows: dict[str, Any] = {}
    for name, chosen in SETTINGS.items():
        columns = list(
            zip(*(best_so_far(seed, chosen) for seed in range(options.seeds)), strict=True)
        )
        rows[name] = {
            "means": [round(statistics.fmean(column), 3) for column in columns],
            "standard_errors": [
                round(statistics.stdev(column) / len(column) ** 0.5, 3) for column in columns
            ],
        }
        print(f"{name}: {rows[name]}", flush=True)
    document = {"openevolve": VERSION, "seeds": options.seeds, "horizons": HORIZONS, "rows": rows}
    MEASURED.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
