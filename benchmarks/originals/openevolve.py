"""OpenEvolve 0.4.1: golden traces of its program database, and their dependence on hash seeds.

The driver inserts 600 scripted programs with scripted scores, without a model. From outside it
replaces the database's sets by ordered sets, its random ids by counted ones, and its random module
by one that records each value. It imports the standard library and openevolve alone, so it runs in
any environment that has the package:

    make originals ORIGINALS=path/to/python
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import importlib
import importlib.metadata
import json
import logging
import os
import random
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "originals"
VERSION = "0.4.1"
INSERTS = 600
STATE_EVERY = 100
"""Inserts between two states that the trace holds whole; a digest comes after every insert."""
HASH_SEEDS = range(5)
EQUAL = range(18, 26)
"""Inserts that repeat their parent: the reference set misses its size, and must draw its first
program later."""
FIRST = "alpha = 1\nbeta = 2\n"
DIGEST_CHARS = 12


@dataclass(frozen=True)
class Setting:
    """A configuration of the database, and how the driver uses it."""

    options: dict[str, Any] = field(default_factory=dict)
    """Fields of `DatabaseConfig`; all others keep their default."""
    sampling: str = "island"
    """`island`: `sample_from_island`, as the controller does. `current`: `sample`."""
    inspirations: int = 2
    combined: bool = True
    """Whether programs have the metric `combined_score`, or three others instead."""
    known_diversities: int = 1000
    """Size of the cache of diversities, which is no option of the original."""


SETTINGS = {
    "defaults": Setting(),
    "three_islands": Setting({"num_islands": 3, "migration_interval": 10}, inspirations=5),
    "trimming": Setting(
        {"num_islands": 4, "population_size": 40, "archive_size": 12, "migration_interval": 8},
        sampling="current",
        known_diversities=60,
    ),
    "features": Setting(
        {
            "num_islands": 2,
            "population_size": 150,
            "feature_dimensions": ["score", "memory", "diversity"],
            "feature_bins": 4,
            "diversity_reference_size": 21,
            "migration_interval": 20,
            "migration_rate": 0.3,
            "elite_selection_ratio": 0.5,
        },
        inspirations=4,
        combined=False,
    ),
}


class OrderedSet:
    """A set whose order is that of insertion, with the methods that the database uses."""

    def __init__(self, items: Iterable[str] = ()) -> None:
        self._items = dict.fromkeys(items)

    def add(self, item: str) -> None:
        self._items.setdefault(item)

    def discard(self, item: str) -> None:
        self._items.pop(item, None)

    def remove(self, item: str) -> None:
        del self._items[item]

    def __sub__(self, other: set[str]) -> OrderedSet:
        return OrderedSet(item for item in self if item not in other)

    def __contains__(self, item: str) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class Recorder:
    """Draws random values and keeps them: method, number of possible results, result."""

    def __init__(self, seed: int) -> None:
        self._draws = random.Random(seed)
        self.tape: list[list[Any]] = []

    def random(self) -> float:
        value = self._draws.random()
        self.tape.append(["random", 0, value])
        return value

    def choice(self, items: Sequence[Any]) -> Any:  # noqa: ANN401 - any item
        place = self._draws.randrange(len(items))
        self.tape.append(["choice", len(items), place])
        return items[place]

    def choices(self, items: Sequence[Any], weights: Sequence[float], k: int) -> list[Any]:
        state = self._draws.getstate()
        mark = self._draws.random()
        self._draws.setstate(state)
        self.tape.append(["choices", len(items), mark])
        return self._draws.choices(items, weights=weights, k=k)

    def randint(self, low: int, high: int) -> int:
        value = self._draws.randint(low, high)
        self.tape.append(["randint", high - low + 1, value])
        return value

    def sample(self, items: Sequence[Any], count: int) -> list[Any]:
        places = self._draws.sample(range(len(items)), count)
        self.tape.append(["sample", len(items), places])
        return [items[place] for place in places]

    def taken(self) -> list[list[Any]]:
        """Return the values since the last call."""
        tape, self.tape = self.tape, []
        return tape


class Ids:
    """Stands in for the module `uuid`: names each copy `copy1`, `copy2` and so on."""

    def __init__(self, *, counted: bool) -> None:
        self._counted = counted
        self.names: dict[str, str] = {}
        """The name of each id that was issued."""

    def uuid4(self) -> str:
        """Return the next name; without `counted` an id as the original makes it."""
        name = f"copy{len(self.names) + 1}"
        issued = name if self._counted else str(uuid.uuid4())
        self.names[issued] = name
        return issued


class Driven:
    """The database of the original in one setting. Lifetime: one trace."""

    def __init__(self, setting: Setting, *, ordered: bool) -> None:
        module = importlib.import_module("openevolve.database")
        config = importlib.import_module("openevolve.config")
        logging.getLogger("openevolve").setLevel(logging.CRITICAL)
        self.setting, self.ids, self.draws = setting, Ids(counted=ordered), Recorder(0)
        vars(module).update(random=self.draws, uuid=self.ids)
        self.program = module.Program
        self.base = module.ProgramDatabase(
            config.DatabaseConfig(random_seed=None, **setting.options)
        )
        self.base.diversity_cache_size = setting.known_diversities
        if ordered:
            self.base.islands = [OrderedSet() for _ in self.base.islands]
            self.base.archive = OrderedSet()

    def named(self, ids: Iterable[str]) -> list[str]:
        """Return the names of some ids."""
        return [self.ids.names.get(item, item) for item in ids]

    def state(self) -> dict[str, Any]:
        """Return the state as JSON: members, islands, cells, elites, best ones, bounds."""
        base = self.base
        name = functools.partial(self.ids.names.get)
        return {
            "members": self.named(base.programs),
            "islands": [self.named(island) for island in base.islands],
            "cells": [
                {cell: name(owner, owner) for cell, owner in grid.items()}
                for grid in base.island_feature_maps
            ],
            "elites": self.named(base.archive),
            "best": self.named([base.best_program_id])[0],
            "island_bests": [item and name(item, item) for item in base.island_best_programs],
            "generations": list(base.island_generations),
            "bounds": {
                item: [known["min"], known["max"]] for item, known in base.feature_stats.items()
            },
            "references": list(base.diversity_reference_set),
        }

    def step(self, number: int) -> dict[str, Any]:
        """Insert one scripted program; return the step of the trace."""
        base, setting = self.base, self.setting
        island = max(number - 1, 0) % len(base.islands)
        before = list(base.programs)
        row: dict[str, Any] = {"island": island}
        code, metrics = FIRST, scores(1.0, "", combined=setting.combined)
        parent = None
        if number:
            parent, inspirations = self._sample(island)
            code, metrics = proposal(number, parent.code, parent.metrics, setting)
            row |= {
                "parent": self.named([parent.id])[0],
                "inspirations": self.named(item.id for item in inspirations),
            }
        row |= {"name": f"p{number}", "code": code, "metrics": metrics}
        child = self.program(
            id=row["name"],
            code=code,
            metrics=dict(metrics),
            parent_id=parent.id if parent else None,
        )
        # In `current` the child goes to its parent's island.
        target = island if setting.sampling == "island" else None
        base.add(child, iteration=number, target_island=target)
        if number:
            base.increment_island_generation(child.metadata["island"])
            if base.should_migrate():
                base.migrate_programs()
                row["migrated"] = True
        copies = [item for item in base.programs if item in self.ids.names and item not in before]
        row["copies"] = [
            [
                *self.named([item, base.programs[item].parent_id]),
                base.programs[item].metadata["island"],
            ]
            for item in copies
        ]
        row["evicted"] = self.named(item for item in before if item not in base.programs)
        return row | {"draws": self.draws.taken(), "digest": digest(self.state())}

    def _sample(self, island: int) -> tuple[Any, list[Any]]:
        if self.setting.sampling == "island":
            found = self.base.sample_from_island(island, self.setting.inspirations)
        else:
            self.base.set_current_island(island)
            found = self.base.sample(self.setting.inspirations)
        return found[0], list(found[1])


def proposal(
    number: int, code: str, metrics: dict[str, float], setting: Setting
) -> tuple[str, dict[str, float]]:
    """Return a scripted child of a program, with its scores.

    Some children equal their parent, many scores are equal, and some are 0, as after a failure.
    """
    draws = random.Random(f"openevolve/{number}")
    lines = code.splitlines()
    kind = 9 if number in EQUAL else draws.randrange(10)
    if kind < 4 or len(lines) < 3:
        lines.append(draws.choice("abcdefghij") * draws.randint(1, 30))
    elif kind < 7:
        del lines[draws.randrange(len(lines))]
    elif kind < 9:
        lines[draws.randrange(len(lines))] = draws.choice("klmnopqrst") * draws.randint(1, 60)
    text = "\n".join(lines) + "\n"
    parent = metrics.get("combined_score", metrics.get("speed", 0.0))
    score = max(0.0, parent + draws.choice((-1.0, -0.5, -0.25, 0.0, 0.0, 0.25, 0.5)))
    score = 0.0 if draws.random() < 0.15 else round(score, 2)
    return text, scores(score, text, combined=setting.combined)


def scores(score: float, code: str, *, combined: bool) -> dict[str, float]:
    """Return the metrics of a program."""
    if combined:
        return {"combined_score": score}
    return {"speed": score, "accuracy": 0.5 if score else 0.0, "memory": float(len(code) % 37)}


def digest(value: object) -> str:
    """Return the digest of a JSON value."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def trace_of(setting: Setting, *, ordered: bool) -> dict[str, Any]:
    """Return the trace of a setting; without `ordered`, the original is as it was published."""
    driven = Driven(setting, ordered=ordered)
    steps: list[dict[str, Any]] = []
    states: dict[str, Any] = {}
    for number in range(INSERTS):
        steps.append(driven.step(number))
        if (number + 1) % STATE_EVERY == 0:
            states[str(number)] = driven.state()
    return {"openevolve": VERSION, "setting": asdict(setting), "steps": steps, "states": states}


def under_hash_seed(name: str, seed: int, *, ordered: bool) -> str:
    """Return the digest of a trace that another process makes with a hash seed."""
    command = [sys.executable, "-m", "benchmarks.originals.openevolve", "--digest", name]
    done = subprocess.run(
        [*command, *(["--ordered"] if ordered else [])],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def write_all() -> int:
    """Write the golden traces and print what hash seeds change; return 1 if that is unexpected."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, setting in SETTINGS.items():
        text = json.dumps(trace_of(setting, ordered=True), separators=(",", ":"))
        path = GOLDEN / f"openevolve_{name}.json.gz"
        # Without a time, so that an equal trace is an equal file.
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
    wanted = {True: 1, False: len(HASH_SEEDS)}
    seen = {
        ordered: len({under_hash_seed("defaults", seed, ordered=ordered) for seed in HASH_SEEDS})
        for ordered in wanted
    }
    print(f"different traces under {len(HASH_SEEDS)} hash seeds: {seen[False]} as published,")
    print(f"{seen[True]} with ordered sets and counted ids")
    return 0 if seen == wanted else 1


def installed() -> bool:
    """Return whether this Python has the original; print what is missing if not."""
    try:
        found = importlib.metadata.version("openevolve")
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != VERSION:
        print(f"skipped: {sys.executable} has openevolve {found}; install openevolve=={VERSION}")
    return found == VERSION


def main() -> int:
    """Write the traces, or print the digest of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--digest", choices=SETTINGS)
    parser.add_argument("--ordered", action="store_true")
    options = parser.parse_args()
    if not installed():
        return 0
    if options.digest:
        print(digest(trace_of(SETTINGS[options.digest], ordered=options.ordered)))
        return 0
    return write_all()


if __name__ == "__main__":
    sys.exit(main())
