"""The learning rate by step."""

import pytest

from tilewright.rl.learning_rate import rate_factor
from tilewright.rl.presets import PRESETS, OptimizerSection


def factors(**settings):
    section = OptimizerSection(steps=6, **settings)
    return [rate_factor(step, section) for step in range(6)]


@pytest.mark.reads_settings
def test_the_rate_of_every_preset_is_constant():
    for each in PRESETS.values():
        assert {rate_factor(step, each.optimizer) for step in range(each.optimizer.steps)} == {1.0}


def test_a_warm_up_begins_above_0_and_ends_at_the_whole_rate():
    assert factors(warmup_steps=3) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_a_schedule_falls_from_the_end_of_the_warm_up_to_the_last_step():
    assert factors(schedule="linear", warmup_steps=2) == [1 / 3, 2 / 3, 1.0, 0.75, 0.5, 0.25]
    cosine = factors(schedule="cosine", warmup_steps=2)
    assert cosine[2:] == pytest.approx([1.0, 0.853553, 0.5, 0.146447], abs=1e-6)
    # A scheduler asks for one step more.
    assert rate_factor(6, OptimizerSection(steps=6, schedule="cosine")) == pytest.approx(0.0)


def test_a_warm_up_may_be_longer_than_the_run():
    assert factors(warmup_steps=11)[-1] == 0.5
