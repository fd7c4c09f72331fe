"""The summary of a census finds its verdicts, its spread, and local optima with their barriers."""

from __future__ import annotations

import math

import pytest

from benchmarks.search.census_summary import Level, level_of, levels_of, optima, report
from tests.space_programs import bad_row, changed, correct_row, header_of, write_census
from tilewright.records.census import Census, read_census, source_digest
from tilewright.spaces import SPACES
from tilewright.spaces.space import programs, source

CPP = SPACES["cpp_matmul"]
FAILED = {"verdict": "failed", "stage": "build", "reason": "build", "message": "no"}


def digest(**more):
    return source_digest(source(CPP, changed(CPP, **more)))


def quality(knobs):
    """Return a speed-up with two peaks: 4 rows of 64 columns, and 8 rows of 32 columns."""
    return {(8, 32): 4.0, (4, 64): 3.0}.get((knobs["rows"], knobs["cols"]), 2.0)


def honest():
    kept = ("form", "threads", "depth", "order", "packing", "sums", "tail", "result")
    return [k for k in programs(CPP) if all(k[name] == CPP.start[name] for name in kept)]


def test_two_peaks_are_found_with_the_barrier_between_them():
    tiles = [knobs for knobs in honest() if knobs["rows"] * knobs["cols"] <= 256]
    levels = {
        source_digest(source(CPP, knobs)): Level(math.log(quality(knobs)), 0.1) for knobs in tiles
    }
    best, second = optima(CPP, levels)[:2]
    assert (best.program, best.barrier) == (digest(rows=8, cols=32), None)
    assert second.program == digest(rows=4, cols=64)
    assert second.barrier == pytest.approx(math.log(3 / 2))
    assert second.standard_errors == pytest.approx(math.log(3 / 2) / math.hypot(0.1, 0.1))


def test_programs_that_no_path_of_correct_programs_connects_are_optima_of_their_own():
    apart = (digest(rows=1, cols=16), digest(rows=8, cols=32))
    levels = {name: Level(0.0, 0.1) for name in apart}
    found = optima(CPP, levels)
    assert [item.barrier for item in found] == [None, None]


def test_a_level_pools_trials_and_one_bad_verdict_leaves_none():
    knobs = changed(CPP)
    rows = [correct_row(CPP, knobs, speed, error=0.01) for speed in (1.0, 4.0)]
    level = level_of(rows)
    assert level is not None
    assert math.exp(level.mean) == pytest.approx(2.0)
    assert level.error == pytest.approx(math.log(4) / 2), "the scatter is larger than both say"
    assert level_of([*rows, bad_row(CPP, knobs, FAILED)]) is None


def test_the_report_has_verdicts_intervals_and_spread(tmp_path):
    rows = [correct_row(CPP, knobs, quality(knobs)) for knobs in honest()]
    rows += [correct_row(CPP, changed(CPP), 2.2)]
    rows += [bad_row(CPP, changed(CPP, order="columns"), FAILED)]
    text = report(read_census(write_census(tmp_path / "c.jsonl", CPP, rows, programs=420)))
    assert "13 of 420 programs: 12 correct, 1 failed" in text
    assert "14 trials" in text
    assert "half-width of a 95 % interval: median 2.0%" in text
    assert "spread 2.0; 1 programs within 5 % of the best; start 2.098x" in text
    assert "4.000x [3.921, 4.081] rows 8, cols 32" in text


def test_a_census_without_a_correct_program_says_so():
    row = bad_row(CPP, changed(CPP), FAILED)
    census = Census(header_of(CPP, 420), "0", {row.program: (row,)})
    assert levels_of(census) == {}
    assert report(census).endswith("no program is correct")
