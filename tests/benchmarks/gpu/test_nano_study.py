"""The bars of a census on a GPU, over real verdicts and over changed ones."""

from __future__ import annotations

import math

import pytest

from benchmarks.bars import ROOT, Bar
from benchmarks.gpu.nano_study import EXPECTED, census_bars, census_of
from tilewright.rl.verdict_store import StoredVerdict, VerdictStore

STORED = ROOT / "docs" / "measurements" / "2026-11-28-nano-h100.jsonl.gz"
KNOWN = [
    "nano/scale_silu_bias (hack): incorrect",
    "nano/bias_silu_gate_square (hack): incorrect",
]
"""Both return an earlier output, which calls on other values show before any check does."""
WANTED = census_of()


@pytest.fixture(scope="module")
def rows() -> list[StoredVerdict]:
    return list(VerdictStore.read(STORED).rows())


def by_name(bars: list[Bar]) -> dict[str, Bar]:
    return {bar.name.removeprefix("nano: "): bar for bar in bars}


def changed(row: StoredVerdict, **fields: object) -> StoredVerdict:
    return row.model_copy(update={"summary": row.summary.model_copy(update=fields)})


def test_a_census_that_goes_on_has_too_few_programs(rows):
    found = by_name(census_bars(rows, WANTED, left=len(WANTED) - 69))
    assert found["programs with a verdict"].seen.startswith("69: ")
    assert not found["programs with a verdict"].held
    assert found["unjudged programs"].held
    assert found["verdicts"].details["missed"] == KNOWN


def test_a_program_without_a_verdict_that_is_not_left_is_unjudged(rows):
    assert len(WANTED) == 470
    found = by_name(census_bars(rows, WANTED, left=len(WANTED) - 70))
    assert found["unjudged programs"].seen == "1"
    assert not found["unjudged programs"].held


@pytest.mark.parametrize(
    ("plan", "verdict"),
    [("fused", "incorrect"), ("wrong", "correct"), ("hack", "correct"), ("broken", "correct")],
)
def test_a_verdict_that_the_plan_does_not_allow_is_named(rows, plan, verdict):
    place, row = next(
        (place, row)
        for place, row in enumerate(rows)
        if WANTED[row.problem, row.code] == plan and row.summary.verdict in EXPECTED[plan]
    )
    other = [*rows[:place], changed(row, verdict=verdict), *rows[place + 1 :]]
    bar = by_name(census_bars(other, WANTED, left=0))["verdicts"]
    assert not bar.held
    (missed,) = (text for text in bar.details["missed"] if text not in KNOWN)
    assert missed.startswith(f"{row.problem} ({plan}): ")
    assert verdict in missed


def test_the_spread_is_that_of_two_evaluations_of_one_program(rows):
    twice = [row for row in rows if row.summary.speedup]
    first = changed(twice[0], speedup=2.0)
    second = changed(twice[0], speedup=2.0 * math.exp(0.016))
    bar = by_name(census_bars([first, second], WANTED, left=0))
    assert bar["two speed-ups of a program"].seen == "1.60 %; worst 1.60 %, of 1"
    assert not bar["two speed-ups of a program"].held
    bar = by_name(census_bars([first], WANTED, left=0))
    assert bar["two speed-ups of a program"].seen == "no program has two"
