"""Part of the inputs is written late, and baseline outputs are kept in every timed call."""

from __future__ import annotations

import pytest

from tests.unit.evaluator.timing.test_blocks import Scripted, plan, steady


def test_part_of_large_inputs_is_written_when_a_runner_is_ready():
    for size, hidden in ((1 << 16, False), (2 << 20, True)):
        evaluation = Scripted.of(plan(), steady(2e-3), steady(1e-3))
        evaluation.moved = size
        evaluation.time()
        asked = evaluation.logged("write_delayed")
        assert {fields["runner"] for fields in asked} == (
            {"eager", "candidate"} if hidden else set()
        )
        if hidden:
            # The runner gets at last exactly the inputs that were written while hidden.
            written = {fields["late"] for fields in evaluation.logged("publish")}
            assert {fields["late"] for fields in asked} <= written | {asked[0]["late"]}


@pytest.mark.reads_settings
def test_baseline_outputs_are_kept_in_every_timed_call():
    evaluation = Scripted.of(plan(20), steady(2e-3), steady(1e-3))
    evaluation.outputs_size = 1 << 30
    evaluation.time()
    asked = evaluation.logged("finish_timed")
    assert {fields["keep"] for fields in asked if fields["runner"] == "eager"} == {True}
    assert {fields["keep"] for fields in asked if fields["runner"] == "candidate"} == {True, False}
