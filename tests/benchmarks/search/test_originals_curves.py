"""The curves of published systems: one search of ours, and the file of the original's curves."""

from __future__ import annotations

import json

from benchmarks.search.originals_curves import (
    HORIZONS,
    MEASURED,
    OPTIONS,
    PUBLISHED,
    best_so_far,
)
from tilewright.loop.strategies import openevolve
from tilewright.testing.synth import OPTIMUM, REFERENCE, time_of


def test_a_search_never_gets_worse_and_repeats():
    curve = best_so_far(openevolve.make, OPTIONS["three_islands"], 1)
    assert curve == best_so_far(openevolve.make, OPTIONS["three_islands"], 1)
    assert curve == sorted(curve)
    assert len(curve) == len(HORIZONS)
    assert 1.0 < curve[-1] <= time_of(REFERENCE) / time_of(OPTIMUM)


def test_the_original_was_measured_in_all_settings():
    document = json.loads(MEASURED.read_text(encoding="utf-8"))
    assert document["openevolve"] == "0.4.1"
    assert tuple(document["horizons"]) == HORIZONS
    assert set(document["rows"]) == set(OPTIONS) == set(PUBLISHED)
    for name, row in document["rows"].items():
        means, error = PUBLISHED[name]
        assert abs(row["means"][-1] - means[-1]) < 3 * (row["standard_errors"][-1] + error)
