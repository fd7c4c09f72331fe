"""The grid against golden traces of OpenEvolve 0.4.1: 600 inserts, with its random values.

`make originals` writes the traces.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest

from tilewright.loop.archives.grid import Grid
from tilewright.loop.archives.grid_members import GridRules, Member
from tilewright.loop.archives.grid_sampling import sample_any, sample_island

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "originals"
NAMES = sorted(path.name[: -len(".json.gz")] for path in GOLDEN.glob("openevolve_*.json.gz"))
OPTIONS = {
    "num_islands": "islands",
    "population_size": "population",
    "archive_size": "elites",
    "feature_dimensions": "dimensions",
    "feature_bins": "bins",
    "diversity_reference_size": "references",
    "migration_interval": "migration_interval",
    "migration_rate": "migration_share",
    "elite_selection_ratio": "elite_share",
}
"""Our names of the original's options."""


class Recorded(random.Random):
    """Gives back recorded values; it refuses another method, or another number of results."""

    def __init__(self, tape):
        super().__init__(0)
        self.tape = list(tape)

    def taken(self, method, count):
        assert self.tape, f"the original draws nothing more, and ours {method} of {count}"
        assert self.tape[0][:2] == [method, count]
        return self.tape.pop(0)[2]

    def random(self):
        return self.taken("random", 0)

    def choice(self, items):
        return items[self.taken("choice", len(items))]

    def randint(self, low, high):
        return self.taken("randint", high - low + 1)

    def sample(self, items, count):
        places = self.taken("sample", len(items))
        assert len(places) == count
        return [items[place] for place in places]

    def choices(self, items, weights, k):
        source = OneValue(self.taken("choices", len(items)))
        return source.choices(items, weights=weights, k=k)


class OneValue(random.Random):
    def __init__(self, value):
        super().__init__(0)
        self.value = value

    def random(self):
        return self.value


def read(name):
    return json.loads(gzip.decompress((GOLDEN / f"{name}.json.gz").read_bytes()))


def rules_of(setting):
    given = {OPTIONS[name]: value for name, value in setting["options"].items()}
    given["dimensions"] = tuple(given.get("dimensions", ("complexity", "diversity")))
    return GridRules(**given, known_diversities=setting["known_diversities"])


def state_of(grid):
    return {
        "members": list(grid.members),
        "islands": [list(island) for island in grid.islands],
        "cells": [
            {"-".join(map(str, cell)): owner for cell, owner in cells.items()}
            for cells in grid.cells
        ],
        "elites": list(grid.elites),
        "best": grid.best,
        "island_bests": [name or None for name in grid.island_bests],
        "generations": grid.generations,
        "bounds": {name: list(bounds) for name, bounds in grid.features.bounds.items()},
        "references": list(grid.features.references),
    }


def digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def taken_step(grid, step, setting):
    """Do one step with the original's random values; return what the trace says about it."""
    tape = Recorded(step["draws"])
    before = dict(grid.members)
    row, island = {}, step["island"]
    if "parent" in step:
        sample = sample_island if setting["sampling"] == "island" else sample_any
        found = sample(grid, island, setting["inspirations"], lambda _: tape)
        row["parent"] = found.parent.name
        row["inspirations"] = [item.name for item in found.inspirations]
        if setting["sampling"] != "island":
            island = found.parent.island
    grid.admit(Member(step["name"], step["code"], step["metrics"]), island, lambda _: tape)
    if "parent" in step:
        grid.end_generation(island)
        if grid.migration_is_due():
            grid.migrate(lambda _: tape)
            row["migrated"] = True
    assert tape.tape == []
    copies = [name for name in grid.members if name.startswith("copy") and name not in before]
    row["copies"] = [(name, grid.members[name].island, grid.members[name].code) for name in copies]
    row["evicted"] = [name for name in before if name not in grid.members]
    return row


def first_difference(grid, trace):
    """Return the first step that differs, and in what; `None` if all are equal."""
    codes = {}
    for number, step in enumerate(trace["steps"]):
        codes[step["name"]] = step["code"]
        codes |= {name: codes[origin] for name, origin, _ in step["copies"]}
        try:
            row = taken_step(grid, step, trace["setting"])
        except AssertionError as error:
            return number, str(error)
        wanted = {name: step[name] for name in row if name != "copies"}
        wanted["copies"] = [(name, island, codes[name]) for name, _, island in step["copies"]]
        if row != wanted:
            return number, row, wanted
        state = state_of(grid)
        whole = trace["states"].get(str(number))
        if whole is not None and state != whole:
            return number, state, whole
        if digest(state) != step["digest"]:
            return number, "digest"
    return None


@pytest.mark.parametrize("name", NAMES)
def test_every_decision_equals_the_originals(name):
    trace = read(name)
    assert trace["openevolve"] == "0.4.1"
    assert len(trace["steps"]) == 600
    assert first_difference(Grid(rules_of(trace["setting"])), trace) is None


def test_the_traces_hold_every_kind_of_decision():
    traces = {name: read(name) for name in NAMES}
    assert len(traces) >= 3
    assert len(traces["openevolve_defaults"]["states"]["599"]["islands"]) == 5
    for name, trace in traces.items():
        steps = trace["steps"]
        methods = {draw[0] for step in steps for draw in step["draws"]}
        assert {"random", "choice", "choices", "randint", "sample"} - methods <= (
            {"choices"} if trace["setting"]["sampling"] == "current" else set()
        )
        assert any(step["evicted"] for step in steps), name
        assert any(step["copies"] for step in steps), name
    # Nearby cells have five results for each dimension; the first reference is drawn among more.
    drawn = [draw for trace in traces.values() for step in trace["steps"] for draw in step["draws"]]
    assert len([draw for draw in drawn if draw[0] == "randint" and draw[1] != 5]) >= 2
    trimmed = [step for step in traces["openevolve_trimming"]["steps"] if len(step["evicted"]) > 1]
    assert trimmed


class NewerWins(Grid):
    """A grid in which an equally fit program takes the place of an older one."""

    def is_fitter(self, name, other):
        return self.fitness[name] >= self.fitness[other]


class LaterMigrates(Grid):
    """A grid that ranks equally fit members in the other order."""

    def fittest(self, names):
        return super().fittest(list(names)[::-1])


@pytest.mark.parametrize("other", [NewerWins, LaterMigrates])
@pytest.mark.parametrize("name", NAMES)
def test_one_changed_tie_break_is_found(name, other):
    trace = read(name)
    assert first_difference(other(rules_of(trace["setting"])), trace) is not None
