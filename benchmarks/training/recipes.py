"""Bars: the rehearsal of each recipe on a CPU, with three seeds.

    python -m benchmarks --only recipes
    python -m benchmarks.training.recipes DIR [--recipe NAME]

DIR keeps the rehearsals, so that a second call draws the bars from their logs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bars import Bar, finish
from tilewright.registry import catalogue
from tilewright.rl.recipes.recipe_folder import RecipeFolder, read_recipe
from tilewright.rl.recipes.recipe_page import whole_gains

MAX_S = 480.0
"""Most seconds of all rehearsals together on two quiet cores."""


def run(match: str) -> list[Bar]:
    """Return the bars of all recipes, or of those whose name contains a text."""
    names = [name for name in catalogue("recipes", packages=()) if match in name]
    with tempfile.TemporaryDirectory() as folder:
        return measured(Path(folder), names or list(catalogue("recipes", packages=())))


def measured(folder: Path, names: list[str]) -> list[Bar]:
    """Run the rehearsals of some recipes until they are complete, and return their bars."""
    began, found = time.monotonic(), list[Bar]()
    for name in names:
        words = ["train", "recipe", name, "--rehearse", "--out", str(folder / name)]
        words += ["--minutes", "60"]
        subprocess.run([sys.executable, "-m", "tilewright", *words], check=True)
        found += bars_of(read_recipe(folder / name))
    seconds = time.monotonic() - began
    whole = f"recipes: seconds of {len(names)}"
    return [*found, Bar(whole, f"at most {MAX_S:g}", f"{seconds:.0f}", seconds <= MAX_S)]


def bars_of(folder: RecipeFolder) -> list[Bar]:
    """Return the bar of a rehearsal: each seed must gain by the reward of the last stage."""
    gains, seeds = whole_gains(folder), folder.config.seeds
    better = [gain for gain in gains.values() if (gain.low or 0.0) > 0]
    shown = ", ".join(f"{gain.end - gain.start:+.2f}" for gain in gains.values())
    return [
        Bar(
            f"recipes: {folder.recipe.name} improves on its start",
            f"{seeds} of {seeds} seeds",
            f"{len(better)} of {len(gains)}: {shown}",
            len(better) == seeds,
        )
    ]


def main() -> int:
    """Print the bars of the rehearsals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recipe", action="append", choices=list(catalogue("recipes")))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    return finish(measured(options.folder, options.recipe or list(catalogue("recipes"))))


if __name__ == "__main__":
    sys.exit(main())
