"""The policy `local`: a tiny model, made for the test, sampled in this process."""

from __future__ import annotations

import math
import queue
import shutil
import threading

import pytest

from tests.tiny_model import make_tiny_model
from tilewright.config import ModelSection
from tilewright.errors import PolicyError
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.choosing import choose
from tilewright.loop.policies.factory import choose_policy
from tilewright.records.events import Ask

pytest.importorskip("transformers")
PROMPT = (Message(role="user", text="Make this fast."),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def model(folder):
    made = []

    def make(**settings):
        section = ModelSection(**{"max_tokens": 12, **settings})
        made.append(choose_policy(f"local:{folder}", section))
        return made[-1]

    yield make
    for policy in made:
        policy.close()


def ask(sample=0, turn=0):
    return Ask(id=f"p#{sample}.{turn}", problem="p", sample=sample, turn=turn)


def test_a_reply_has_tokens_and_log_probabilities(model):
    reply = model(seed=3).answer(PROMPT, ask())
    assert 0 < len(reply.tokens) == len(reply.logprobs) == reply.reply_tokens <= 12
    assert all(-20 < value <= 0 for value in reply.logprobs)
    assert reply.finish in ("stop", "length")
    assert reply.prompt_tokens > 5


def test_a_seed_repeats_a_reply_and_differs_between_turns(model):
    policy = model(seed=3)
    one, again, other = (policy.answer(PROMPT, ask(turn=n)) for n in (0, 0, 1))
    assert one.tokens == again.tokens
    assert one.tokens != other.tokens


def test_an_untrained_model_has_nearly_uniform_log_probabilities(model):
    policy = model(max_tokens=40)
    logprobs = [v for n in range(4) for v in policy.answer(PROMPT, ask(turn=n)).logprobs]
    assert sum(logprobs) / len(logprobs) == pytest.approx(-math.log(300), abs=1.0)


def test_without_temperature_the_likeliest_token_is_taken(model):
    policy = model(temperature=0.0)
    replies = {policy.answer(PROMPT, ask(sample=n)).tokens for n in range(3)}
    assert len(replies) == 1


def test_waiting_prompts_are_answered_in_one_batch(model):
    policy = model(temperature=0.0)
    prompts = [(Message(role="user", text="word " * n),) for n in range(1, 9)]
    alone = [policy.answer(prompt, ask()) for prompt in prompts]
    together = [None] * len(prompts)

    def one(place):
        together[place] = policy.answer(prompts[place], ask())

    threads = [threading.Thread(target=one, args=(n,)) for n in range(len(prompts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reply.prompt_tokens for reply in together] == [r.prompt_tokens for r in alone]
    assert [reply.tokens[0] for reply in together] == [reply.tokens[0] for reply in alone]


def test_a_folder_without_a_model_is_a_policy_error(tmp_path):
    with pytest.raises(PolicyError, match=str(tmp_path)):
        choose_policy(f"local:{tmp_path}", ModelSection())


def test_the_log_probabilities_of_a_choice_are_those_of_its_tokens(model):
    policy = model()
    choices = ("stop", "tile the loop")
    scores = policy.score_choices(PROMPT, choices)
    again = policy.score_choices(PROMPT, choices[::-1])
    assert scores == again[::-1]
    assert all(value < 0 for row in scores for value in row)
    assert len(scores[1]) > len(scores[0]) >= 1


def test_a_local_model_takes_its_most_likely_choice(model):
    policy = model()
    asked = Ask(id="p#0.0", problem="p", role="choose", choices=("stop", "tile", "fuse"))
    _, choice = choose(policy, PROMPT, asked)
    means = [sum(row) / len(row) for row in choice.logprobs]
    assert means[choice.taken] == max(means)


class SlowQueue(queue.Queue):
    """Says that it holds a request which another thread has just taken."""

    def empty(self):
        return False


def test_the_end_waits_for_no_request_that_was_taken_meanwhile(model):
    policy = model()
    before, policy._waiting = policy._waiting, SlowQueue()
    ends = threading.Thread(target=policy.close, daemon=True)
    # The thread that samples waits at the queue that it got at its start.
    before.put(None)
    ends.start()
    ends.join(10)
    assert not ends.is_alive()


def test_loading_a_model_prints_nothing_and_refuses_absent_weights(folder, tmp_path, capfd):
    policy = choose_policy(f"local:{folder}", ModelSection(max_tokens=12))
    policy.close()
    assert capfd.readouterr() == ("", "")
    torch = pytest.importorskip("safetensors.torch")
    shutil.copytree(folder, tmp_path / "half")
    file = tmp_path / "half" / "model.safetensors"
    weights = torch.load_file(file)
    removed = next(name for name in weights if name.endswith("q_proj.weight"))
    torch.save_file({n: w for n, w in weights.items() if n != removed}, file, {"format": "pt"})
    with pytest.raises(PolicyError, match=removed):
        choose_policy(f"local:{tmp_path / 'half'}", ModelSection())
