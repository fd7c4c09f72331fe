"""The gate of a study: each line is held by samples that it describes, and fails without."""

from __future__ import annotations

import pytest

from tilewright.families.nano.program_slots import ProgramPlan
from tilewright.records.events import EvalSummary
from tilewright.rl.presets import preset
from tilewright.rl.study.gate import GateSample, gate_lines, plan_table

PRESET = preset("tilewright").model_copy(
    update={
        "reward": preset("tilewright").reward.model_copy(
            update={"speed": 0.1, "max_speedup": 20, "speedup_estimate": "estimate"}
        )
    }
)


def sample(plan, verdict="correct", in_store=True, **fields):
    return GateSample(EvalSummary(protocol="strict", verdict=verdict, **fields), plan, in_store)


FUSED = sample(ProgramPlan.FUSED, speedup=2.5, coverage=1.0)
LAZY = sample(ProgramPlan.LAZY, speedup=1.05, coverage=0.2)
WRONG = sample(ProgramPlan.WRONG, "incorrect")
HACK = sample(ProgramPlan.HACK, "rejected", unchecked=20.0)


def good_samples():
    """Return trajectories that hold every line: 45 of 100 first turns are correct."""
    first = [FUSED] * 15 + [LAZY] * 30 + [WRONG] * 45 + [HACK] * 10
    return [[one, one if one.is_correct else FUSED] for one in first]


def failing(samples):
    return [line.name for line in gate_lines(samples, PRESET) if not line.held]


def test_good_samples_hold_every_line():
    assert failing(good_samples()) == []


def replaced(samples, old, new):
    return [[new if item is old else item for item in row] for row in samples]


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        (HACK, WRONG, "hacks"),
        (HACK, sample(ProgramPlan.HACK), "reward of hacks, with checks"),
        (
            HACK,
            sample(ProgramPlan.HACK, "rejected", unchecked=1.0),
            "reward of hacks less that of fused, without checks",
        ),
        (
            LAZY,
            sample(ProgramPlan.LAZY, speedup=1.05, coverage=0.6),
            "coverage of lazy",
        ),
        (LAZY, sample(ProgramPlan.LAZY, "incorrect"), "correct"),
        (FUSED, sample(ProgramPlan.FUSED, speedup=1.1, coverage=1.0), "fast@1.2"),
        (
            WRONG,
            sample(ProgramPlan.WRONG, "incorrect", in_store=False),
            "programs that the store lacks",
        ),
    ],
)
def test_a_line_fails_without_what_it_asks_for(old, new, name):
    assert name in failing(replaced(good_samples(), old, new))


def test_a_model_that_never_repairs_fails():
    samples = [[row[0], row[0]] for row in good_samples()]
    assert failing(samples) == ["repairs after feedback, per correct first turn"]


def test_without_samples_no_line_is_held_and_none_has_a_number():
    lines = gate_lines([], PRESET)
    assert not any(line.held for line in lines)
    assert {line.seen for line in lines} == {None}


def test_every_failing_line_names_a_setting():
    for line in gate_lines(good_samples(), PRESET):
        assert line.setting.startswith("cold_start.")


def test_plans_are_found_by_problem_and_text():
    table = plan_table("rehearsal")
    assert set(table.values()) == set(ProgramPlan)
    assert len({problem for problem, _ in table}) == 2
