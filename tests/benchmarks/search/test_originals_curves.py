"""The curves of published systems: one search of ours, and the file of the original's curves."""

from __future__ import annotations

import json

import pytest

from benchmarks.search.originals_curves import (
    CURVES,
    HORIZONS,
    MAKERS,
    MEASURED,
    best_so_far,
    fisher,
)
from tilewright.testing.synth import OPTIMUM, REFERENCE, time_of


@pytest.mark.parametrize("name", ["openevolve, three_islands", "polca, epsilon .05"])
def test_a_search_never_gets_worse_and_repeats(name):
    found = CURVES[name]
    curve = best_so_far(MAKERS[found.system], found.options, 1)
    assert curve == best_so_far(MAKERS[found.system], found.options, 1)
    assert curve == sorted(curve)
    assert len(curve) == len(HORIZONS)
    assert 1.0 < curve[-1] <= time_of(REFERENCE) / time_of(OPTIMUM)


def test_the_original_was_measured_in_all_settings():
    document = json.loads(MEASURED.read_text(encoding="utf-8"))
    assert document["openevolve"] == "0.4.1"
    assert tuple(document["horizons"]) == HORIZONS
    curves = {name.split(", ")[1]: item for name, item in CURVES.items() if "openevolve" in name}
    assert set(document["rows"]) == set(curves)
    for name, row in document["rows"].items():
        means, error = curves[name].means, curves[name].error
        assert abs(row["means"][-1] - means[-1]) < 3 * (row["standard_errors"][-1] + error)


def test_fishers_test_has_the_values_of_a_table():
    # 3 of 4 against 1 of 4: the tea of Fisher 1935.
    assert fisher(3, 1, 4) == pytest.approx(17 / 70)
    assert fisher(4, 0, 4) == pytest.approx(1 / 70)
    assert fisher(0, 0, 4) == 1.0
