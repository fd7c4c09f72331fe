"""The settings of a training that is resumed with more steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import ConfigError
from tilewright.rl.training_config import TrainConfig, with_more_steps

RUN = Path("RUN")


def of(**optimizer):
    return TrainConfig(overrides={"optimizer": optimizer, "loss": {"scale": 2.0}})


def test_only_a_larger_number_of_steps_is_accepted():
    before = of(steps=4)
    assert with_more_steps(before, of(steps=4), RUN) is before
    assert with_more_steps(before, of(steps=5), RUN) == of(steps=5)
    with pytest.raises(ConfigError, match="RUN has 4 steps"):
        with_more_steps(before, of(steps=3), RUN)


def test_other_changes_of_the_preset_are_left_to_the_caller():
    assert with_more_steps(of(steps=4), of(steps=5, learning_rate=1.0), RUN) == of(steps=5)
    assert with_more_steps(TrainConfig(), of(steps=301), RUN) == TrainConfig(
        overrides={"optimizer": {"steps": 301}}
    )


def test_a_schedule_that_ended_accepts_no_more_steps():
    with pytest.raises(ConfigError, match="schedule cosine, which ends at step 4"):
        with_more_steps(of(steps=4, schedule="cosine"), of(steps=5, schedule="cosine"), RUN)
