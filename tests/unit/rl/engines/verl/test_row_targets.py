"""The masks and advantages of verl's rows, by number and never by position."""

from __future__ import annotations

import pytest
import torch

from tests.engine_batch import stored_batch
from tests.engine_loops import estimate, load, turns_in
from tests.engine_model import logprobs, tiny_model
from tests.training_fixtures import toy
from tilewright.errors import InfrastructureError
from tilewright.rl.engines.verl.row_targets import row_targets
from tilewright.rl.training_rows import rows_of
from tilewright.rl.training_step import Estimation, trained_step


@pytest.fixture(scope="module")
def before():
    with torch.no_grad():
        model = tiny_model()
        return {
            at: logprobs(model, turn["prompt"], turn["reply"])
            for at, turn in turns_in(load()).items()
        }


@pytest.fixture
def step(before, tmp_path):
    batch = stored_batch()
    rows = rows_of(batch)
    logs = [before[row.trajectory, row.turn] for row in rows]
    preset = toy(tmp_path, "preset=paper").estimator()
    preset = preset.model_copy(update={"loss": preset.loss.model_copy(update={"scale": 1000.0})})
    paid = preset.reward.model_copy(update={"speed": 1.0, "max_speedup": 3.0})
    preset = preset.model_copy(update={"reward": paid})
    return trained_step(batch, rows, logs, Estimation(preset, 3), (0.0, None), {})


def test_rows_get_the_numbers_of_the_loops_in_any_order(step, before):
    wanted = estimate(load(), "paper", "kept", before)
    places = [*sorted(before, reverse=True), None, None]
    lengths = [1 if place is None else len(before[place]) for place in places]
    found = row_targets(places, lengths, step.rows)
    for place, length, target in zip(places, lengths, found, strict=True):
        kept = place in wanted["kept"]
        assert target.mask.tolist() == [int(kept)] * length
        gain = wanted["advantages"][place] * wanted["weights"][place] if kept else 0.0
        torch.testing.assert_close(target.advantages, torch.full((length,), gain))


def test_a_lost_row_and_a_doubled_row_are_refused(step, before):
    places = sorted(before)
    lengths = [len(before[place]) for place in places]
    with pytest.raises(InfrastructureError, match="1 turns of the loss are not among them"):
        row_targets(places[1:], lengths[1:], step.rows)
    with pytest.raises(InfrastructureError, match=r"22 rows of 21 turns|verl has"):
        row_targets([*places, places[0]], [*lengths, lengths[0]], step.rows)
