"""Each of the three presets gives recorded numbers for one fixed batch.

A test fails if a change of the estimator changes one of them.

`python tests/unit/rl/test_estimator.py` writes the file again, after a deliberate change.
"""

import json
import random
from pathlib import Path

import pytest
import torch

from tilewright.records.events import EvalSummary
from tilewright.rl.estimator import estimate_rows, estimate_turns
from tilewright.rl.loss import policy_loss
from tilewright.rl.masked_tensors import listed
from tilewright.rl.presets import PRESETS, Preset
from tilewright.rl.rewards.turn_reward import JudgedTurn
from tilewright.rl.training_rows import turns_from

GOLDENS = Path(__file__).with_name("estimator_goldens.json")
PROMPTS, ROLLOUTS, TURNS, TOKENS = 2, 6, 3, 5
VERDICTS = (*["correct"] * 6, "incorrect", "failed", "rejected", "unjudged", "")
"""An empty text is an absent turn."""


def batch_of(preset: Preset):
    """Return the turns of the batch, the log-probabilities of both models, and the tokens."""
    draw = random.Random("a fixed batch")
    trajectories = [(f"p{n}", rollout) for n in range(PROMPTS) for rollout in range(ROLLOUTS)]
    present, verdicts = [], []
    for _ in trajectories:
        names = [draw.choice(VERDICTS) for _ in range(TURNS)]
        present.append([bool(name) for name in names])
        verdicts.append([verdict_of(name, draw) for name in names])
    turns = turns_from(trajectories, present, verdicts, preset, seed=7)
    shape = (len(trajectories), TURNS, TOKENS)
    before = torch.tensor(numbers(shape, lambda: -draw.expovariate(1.0)), dtype=torch.float64)
    noise = torch.tensor(numbers(shape, lambda: draw.gauss(0.0, 2e-3)), dtype=torch.float64)
    lengths = torch.tensor([[draw.randint(1, TOKENS) for _ in range(TURNS)] for _ in trajectories])
    generated = (torch.arange(TOKENS) < lengths[..., None]) & turns.present[..., None]
    return turns, before, before + noise, generated


def numbers(shape, value):
    return [[[value() for _ in range(shape[2])] for _ in range(shape[1])] for _ in range(shape[0])]


def verdict_of(name, draw):
    if name in ("", "unjudged"):
        return None
    speedup = draw.uniform(0.5, 4.0)
    found = {"speedup": speedup, "low": 0.95 * speedup, "high": 1.05 * speedup}
    found["coverage"] = draw.random()
    found = found if name == "correct" else {}
    return JudgedTurn(EvalSummary(protocol="strict", verdict=name, **found))


def made_of(preset: Preset):
    """Return everything that a step computes from the batch, as lists."""
    sizes = {"prompts": PROMPTS, "rollouts": ROLLOUTS, "turns": TURNS}
    sampling = preset.sampling.model_copy(update=sizes)
    preset = preset.model_copy(update={"sampling": sampling})
    turns, before, sampler, generated = batch_of(preset)
    estimate = estimate_turns(turns, preset)
    rows = estimate_rows(estimate, before, sampler, generated, preset)
    clips = preset.loss.model_dump(include={"clip_low", "clip_high", "dual_clip"})
    arguments = (before.flatten(0, 1), rows.tokens.flatten(0, 1), rows.advantages.flatten())
    now = (before + 0.1 * torch.sin(torch.arange(before.numel()).reshape(before.shape))).flatten(
        0, 1
    )
    loss = policy_loss(now, *arguments, rows.weights.flatten(), **clips)
    return {
        "rewards": listed(turns.rewards),
        "returns": listed(estimate.returns),
        "filtered": estimate.filtered.tolist(),
        "profiled": estimate.profiled.tolist(),
        "advantages": rows.advantages.tolist(),
        "tokens": rows.tokens.tolist(),
        "weights": rows.weights.tolist(),
        "loss": float(loss),
    }


def leaves(tree, at=""):
    if isinstance(tree, dict | list):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in pairs:
            yield from leaves(value, f"{at}/{key}")
    else:
        yield at, tree


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_makes_the_recorded_numbers(name):
    wanted = dict(leaves(json.loads(GOLDENS.read_text(encoding="utf-8"))[name]))
    made = dict(leaves(made_of(PRESETS[name])))
    assert made.keys() == wanted.keys()
    for place, value in wanted.items():
        # The last digits depend on the order in which a processor adds.
        near = type(value) is float
        assert made[place] == (pytest.approx(value, rel=1e-12) if near else value), place


def test_the_batch_has_all_cases():
    wanted = json.loads(GOLDENS.read_text(encoding="utf-8"))
    for made in wanted.values():
        kept = [value for _, value in leaves(made["tokens"])]
        assert 0 < sum(kept) < len(kept)
        assert None in dict(leaves(made["rewards"])).values()
    assert len({json.dumps(made["advantages"]) for made in wanted.values()}) == len(PRESETS)


if __name__ == "__main__":
    found = {name: made_of(each) for name, each in PRESETS.items()}
    GOLDENS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
