"""One pass scores all options as separate passes do, and the critic leaves the policy alone."""

# ruff: noqa: E402 - a machine without transformers skips all of it
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.tiny_model import make_tiny_model
from tilewright.config.schema import ModelSection
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.local_model import Local
from tilewright.rl.engines.choices.critic import Critic
from tilewright.rl.engines.choices.model import LanguageChoices
from tilewright.rl.engines.choices.option_scores import score_options
from tilewright.rl.engines.trl import models

OPTIONS = ("fuse the scale with the silu", "use 8 warps", "stop")
PROMPTS = ("a program", "another program that is longer")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make_tiny_model(tmp_path_factory.mktemp("tiny"))


def policy_of(path, rows=8, double=False):
    model = models.load_model(str(path)).eval()
    critic, tokenizer = Critic(32, 16, seed=1), models.load_tokenizer(str(path))
    if double:
        model = model.double()
    return LanguageChoices("tiny", model, critic, tokenizer, rows=rows, steps=4)


def messages(text):
    return (Message(role="user", text=text),)


def test_one_pass_gives_the_scores_of_separate_passes(path):
    """`Local.score_choices` runs the model once for each option, as a search does."""
    policy, local = policy_of(path), Local(str(path), ModelSection())
    states = [policy.encode(messages(text), OPTIONS[: 3 - n]) for n, text in enumerate(PROMPTS)]
    found = policy.score(states)
    for number, text in enumerate(PROMPTS):
        wanted = local.score_choices(messages(text), OPTIONS[: 3 - number])
        for row, alone in zip(found[number].logprobs, wanted, strict=True):
            assert row == pytest.approx(alone, abs=1e-5)
    local.close()
    # Neither the other states nor the order of the options matters.
    (only,) = policy_of(path, rows=1).score(states[:1])
    for row, same in zip(only.logprobs, found[0].logprobs, strict=True):
        assert row == pytest.approx(same, abs=2e-6)
    turned = policy.encode(messages(PROMPTS[0]), OPTIONS[::-1])
    for row, same in zip(policy.score([turned])[0].logprobs[::-1], found[0].logprobs, strict=True):
        assert row == pytest.approx(same, abs=2e-6)


def test_the_state_of_the_critic_is_that_of_the_prompt(path):
    policy = policy_of(path)
    (state,) = [policy.encode(messages(PROMPTS[0]), OPTIONS)]
    ids = torch.tensor([state.prompt])
    wanted = policy.model(input_ids=ids, output_hidden_states=True).hidden_states[-1][0, -1]
    made = score_options(policy.model, [state], policy.pad)
    assert torch.allclose(made.states[0], wanted, atol=1e-5)
    assert not made.states.requires_grad


def test_the_gradient_of_the_critic_does_not_reach_the_policy(path):
    policy = policy_of(path)
    state = policy.encode(messages(PROMPTS[0]), OPTIONS)
    log_pi, hidden = policy.log_policy([state], "token")
    policy.values(hidden, [2]).sum().backward()
    assert all(weight.grad is None for weight in policy.model.parameters())
    assert any(bool(weight.grad.any()) for weight in policy.critic.parameters())
    log_pi[0, 0].backward()
    assert any(bool(weight.grad.any()) for weight in policy.model.parameters())


@pytest.mark.parametrize("rule", ["sum", "token", "word"])
def test_the_gradient_of_log_pi_agrees_with_finite_differences_through_the_model(path, rule):
    policy = policy_of(path, double=True)
    state = policy.encode(messages(PROMPTS[0]), OPTIONS)
    weight = policy.model.get_input_embeddings().weight
    log_pi, _ = policy.log_policy([state], rule)
    log_pi[0, 1].backward()
    step, row = 1e-3, state.options[1][0]

    def moved(place, by):
        with torch.no_grad():
            weight[row, place] += by
            found, _ = policy.log_policy([state], rule)
            weight[row, place] -= by
        return found[0, 1].item()

    for place in range(6):
        wanted = (moved(place, step) - moved(place, -step)) / (2 * step)
        # Norms of the model pass through float32, whose rounding a difference divides by the step.
        assert weight.grad[row, place].item() == pytest.approx(wanted, rel=2e-3, abs=1e-4)
