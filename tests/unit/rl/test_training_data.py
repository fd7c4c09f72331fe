"""Rollout batches, rows and settings of training, without an engine."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.training_fixtures import played, toy, write_toy
from tilewright.cli.main import cli
from tilewright.errors import ConfigError, ProblemError, RecordError
from tilewright.loop.driver import replay
from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, EvalSummary, Reply, RequestsIssued, Turn, TurnFinished
from tilewright.rl.masked_tensors import listed
from tilewright.rl.presets import (
    PAPER,
    PRESETS,
    RELEASED_CODE,
    TILEWRIGHT,
    SamplingSection,
    TurnRewardSection,
)
from tilewright.rl.rewards.turn_reward import JudgedTurn
from tilewright.rl.rollouts import EventHistory, Rollouts, judged
from tilewright.rl.tokens import TokenSample, read_samples, write_samples
from tilewright.rl.training_config import load_training
from tilewright.rl.training_metrics import metrics_line, reward_noise, verdict_metrics
from tilewright.rl.training_rows import pieces, rewards_of, rows_of, table, turns_of
from tilewright.rl.training_run import TrainingRun
from tilewright.rl.trajectories import LockstepStrategy, drawn_problems, trajectories_of
from tilewright.scoring.rewards import REWARDS
from tilewright.testing.synth import OPTIMUM, REFERENCE, render
from tilewright.testing.synth_world import SynthWorld


def turn_of(ask, verdict="failed"):
    return Turn(ask=ask, judgements=(EvalSummary(protocol="strict", verdict=verdict),))


def test_every_problem_is_drawn_before_any_repeats():
    names = ["a", "b", "c", "d", "e"]
    drawn = [name for step in range(5) for name in drawn_problems(names, 3, step, seed=1)]
    assert [sorted(drawn[start : start + 5]) for start in (0, 5, 10)] == [names] * 3
    assert drawn[:5] != drawn[5:10]
    assert drawn_problems(names, 3, 2, seed=1) == drawn[6:9]
    assert drawn_problems(names, 15, 0, seed=2) != drawn


def test_a_prompt_that_is_drawn_twice_makes_two_groups():
    items = trajectories_of("step00007", ["a", "b", "a"], 2, 100)
    assert [item.group for item in items[::2]] == [
        "step00007/a.0",
        "step00007/b.0",
        "step00007/a.1",
    ]
    assert [item.sample for item in items] == list(range(100, 106))
    assert len({item.ask_id(t) for item in items for t in range(3)}) == 18


def lockstep(turns=2, shown=lambda _, earlier: tuple(earlier)):
    return LockstepStrategy(trajectories_of("step00000", ["a", "b"], 2, 0), turns, shown)


def test_a_turn_is_requested_after_all_of_the_previous_turn_finished():
    strategy = lockstep()
    first = strategy.ask(3) + strategy.ask(10)
    assert [ask.turn for ask in first] == [0] * 4
    for ask in first[:3]:
        strategy.tell(turn_of(ask, "correct"))
    assert strategy.ask(10) == []
    strategy.tell(turn_of(first[3]))
    second = strategy.ask(10)
    assert [(ask.turn, ask.shown_turns) for ask in second] == [(1, (ask.id,)) for ask in first]
    for ask in second:
        strategy.tell(turn_of(ask))
    assert strategy.ask(10) == []


def test_a_trajectory_without_token_capacity_is_absent_from_then_on():
    strategy = lockstep(3, lambda problem, earlier: None if problem == "a" and earlier else ())
    for count in (4, 2, 2):
        asks = strategy.ask(10)
        assert len(asks) == count
        for ask in asks:
            strategy.tell(turn_of(ask))
    assert strategy.ask(10) == []


def test_a_batch_is_replayed_in_any_order_of_finishing():
    strategy = lockstep()
    asks = strategy.ask(4)
    events = [
        RequestsIssued(limit=4, asks=tuple(asks)),
        *(TurnFinished(turn=turn_of(a)) for a in asks[2::-1]),
    ]
    assert replay(lockstep(), events) == [asks[3]]


def test_turns_that_ended_a_run_are_judged_again():
    strategy = lockstep()
    asks = strategy.ask(4)
    log = [RequestsIssued(limit=4, asks=tuple(asks))]
    log += [
        TurnFinished(turn=turn_of(a, "unjudged" if n < 2 else "failed")) for n, a in enumerate(asks)
    ]
    assert EventHistory(log).settled("step00000", most_unjudged=2) == log
    again = EventHistory(log).settled("step00000", most_unjudged=1)
    assert replay(lockstep(), again) == asks[:2]
    # Told once more: what was said last counts.
    log += [TurnFinished(turn=turn_of(a)) for a in asks[:2]]
    assert replay(lockstep(), EventHistory(log).settled("step00000", most_unjudged=0)) == []


class Typist:
    """Writes programs: a token is a character, and the reply is decided by the seed alone."""

    name = "typist"

    def __init__(self):
        self.sampled = []

    def encode(self, messages):
        return [ord(char) for item in messages for char in item.text]

    def decode(self, reply):
        return "".join(map(chr, reply))

    def sample(self, prompts, seed, sampling):  # noqa: ARG002
        self.sampled.append(len(prompts))
        texts = [render(OPTIMUM if n % 2 else REFERENCE) for n in range(len(prompts))]
        found = []
        for prompt, text in zip(prompts, texts, strict=True):
            reply = tuple(map(ord, text))
            assert len(prompt) + len(reply) <= sampling.context_tokens
            found.append(TokenSample(tuple(prompt), reply, (-0.5,) * len(reply), "stop"))
        return found


@pytest.mark.parametrize(("context", "absent", "shown"), [(2000, 0, 2), (450, 0, 1), (300, 8, 0)])
def test_a_prompt_drops_whole_oldest_turns_and_keeps_the_problem(tmp_path, context, absent, shown):
    config = toy(tmp_path)
    world, typist = SynthWorld(), Typist()
    sampling = SamplingSection(context_tokens=context, reply_tokens=200)
    items = trajectories_of("step00000", ["synth/0"], 4, 0)
    with EventLog(tmp_path) as log:
        rollouts = Rollouts(
            tmp_path, world, world.problems("synth"), log, EventHistory(), config=config
        )
        found = rollouts.play(items, 3, typist, sampling)
    assert sum(row.count(None) for row in found.turns) == absent
    assert typist.sampled == [4] * (3 - absent // 4)
    last = next(turn for turn in reversed(found.turns[0]) if turn is not None)
    assert len(last.ask.shown_turns) == shown
    if shown == 1:
        assert last.ask.shown_turns == last.ask.parents
    for turns, samples in zip(found.turns, found.samples, strict=True):
        for turn, sample in zip(turns, samples, strict=True):
            assert (turn is None) == (sample is None)
            if turn is not None:
                assert typist.decode(sample.reply) == turn.reply.text


def test_a_problem_without_tokens_for_a_reply_is_a_config_error(tmp_path):
    world = SynthWorld()
    with EventLog(tmp_path) as log:
        rollouts = Rollouts(
            tmp_path, world, world.problems("synth"), log, EventHistory(), config=toy(tmp_path)
        )
        items = trajectories_of("step00000", ["synth/0"], 2, 0)
        sampling = SamplingSection(context_tokens=100, reply_tokens=90)
        with pytest.raises(ConfigError, match="leaves room for a reply"):
            rollouts.play(items, 2, Typist(), sampling)


SAMPLES = {
    "a#0.0": TokenSample((1, 2, 3), (4, 5), (-0.25, -1.5), "stop"),
    "b#1.0": TokenSample((7,), (8,), (-0.125,), "length"),
}


def test_samples_survive_their_file(tmp_path):
    path = tmp_path / "rollouts" / "step00000.0.safetensors"
    write_samples(path, SAMPLES)
    assert read_samples(path) == SAMPLES
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(RecordError, match="no samples can be read"):
        read_samples(path)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(1, 12))
def test_every_row_is_in_exactly_one_micro_batch(lengths, most):
    cut = pieces(lengths, most)
    assert sorted(row for piece in cut for row in piece) == list(range(len(lengths)))
    assert 1 <= len(cut) <= min(most, len(lengths))
    assert all(cut)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=7), st.integers(1, 4))
def test_rows_are_split_into_the_smallest_largest_micro_batch(lengths, most):
    order = sorted(lengths, reverse=True)
    others = []
    for count in range(min(most, len(order))):
        for places in itertools.combinations(range(1, len(order)), count):
            ends = itertools.pairwise((0, *places, len(order)))
            others.append(max((end - start) * order[start] for start, end in ends))
    cut = pieces(lengths, most)
    assert max(len(piece) * max(lengths[row] for row in piece) for piece in cut) == min(others)


@pytest.mark.parametrize("name", ["paper", "released_code", "tilewright"])
@pytest.mark.parametrize(
    "said",
    [
        EvalSummary(protocol="strict", verdict="unjudged"),
        EvalSummary(protocol="strict", verdict="rejected", speedup=2.0),
        EvalSummary(protocol="strict", verdict="correct", speedup=2.08, low=1.9, coverage=0.8615),
        EvalSummary(protocol="strict", verdict="correct", speedup=9.0, low=5.0),
        EvalSummary(protocol="strict", verdict="correct"),
    ],
)
def test_the_reward_of_a_preset_is_the_rule_of_its_name(name, said):
    verdicts = [[JudgedTurn(said) if judged(said) else None]]
    ((reward,),) = listed(rewards_of(verdicts, PRESETS[name].reward))
    assert reward == pytest.approx(REWARDS[name](said))


def test_rows_carry_their_groups_and_positions():
    batch = played(
        [["correct", "unjudged"], ["failed", None], ["rejected", "correct"]] * 2, groups=2
    )
    turns = turns_of(batch, PAPER, seed=0)
    assert turns.prompts.tolist() == [0, 0, 0, 1, 1, 1]
    assert turns.present.tolist() == [[True, True], [True, False], [True, True]] * 2
    assert turns.rewards.known.tolist() == [[True, False], [True, False], [True, True]] * 2
    assert turns.eligible.tolist() == [[True, False], [False, False], [False, True]] * 2
    rows = rows_of(batch)
    assert [(row.trajectory, row.turn) for row in rows[:5]] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (2, 0),
        (2, 1),
    ]
    values = [torch.tensor(row.sample.logprobs) for row in rows]
    whole = table(rows, values, (6, 2))
    shuffled = sorted(range(len(rows)), key=lambda n: -len(values[n]))
    again = table([rows[n] for n in shuffled], [values[n] for n in shuffled], (6, 2))
    assert torch.equal(whole, again)
    assert whole[1, 1].abs().sum() == 0


def test_the_metrics_of_a_batch():
    batch = played(
        [["correct", "correct"], ["failed", "rejected"], ["unjudged", None], ["correct", "failed"]],
        groups=1,
    )
    figures = verdict_metrics(batch, TILEWRIGHT)
    assert figures["turns"] == 7
    assert figures["absent"] == 1 / 8
    assert figures["unjudged"] == 1 / 7
    assert figures["correct"] == 3 / 6
    assert figures["rejected"] == 1 / 6
    assert figures["turn1/correct"] == 2 / 3
    assert figures["turn1/pass@1"] == pytest.approx(2 / 3)
    assert "turn1/pass@4" not in figures, "three were judged"
    assert "reward" in metrics_line(figures)


def test_reward_noise_is_that_of_one_program():
    def turn(source, speedup, parent):
        said = EvalSummary(protocol="strict", verdict="correct", speedup=speedup, low=speedup)
        ask = Ask(id=f"{source}{speedup}", problem="p", parents=(parent,))
        return Turn(ask=ask, source=source, reply=Reply(text="x"), judgements=(said,))

    said = [("a", 1.0, "x"), ("a", 1.2, "y"), ("b", 2.0, "x"), ("b", 2.0, "x"), ("c", 3.0, "x")]
    turns, rewards = [turn(*item) for item in said], [speedup for _, speedup, _ in said]
    assert reward_noise(turns, rewards, PAPER) == pytest.approx(math.sqrt(0.02 / 2))
    assert reward_noise(turns[4:], rewards[4:], PAPER) is None
    # A speed-up over the parent differs between parents without any noise.
    relative = PAPER.model_copy(update={"reward": TurnRewardSection(function="relative_to_parent")})
    assert reward_noise(turns, rewards, relative) == 0.0


def test_settings_are_laid_over_a_preset(tmp_path):
    config = toy(tmp_path, "preset=released_code", "overrides.mismatch.level=off")
    found = config.estimator()
    assert found.name == "released_code, changed"
    assert found.mismatch.level == "off"
    assert found.filters == RELEASED_CODE.filters
    assert found.reward.correct == 0.5
    assert found.reward.speed == 0.1


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("preset=papre", "no preset is called 'papre'"),
        ("overrides.loss.scael=1", "overrides.loss.scael: no such setting; there are clip_low"),
        ("overrides.loss=3", "overrides.loss is a section"),
        ("overrides.loss.scale=-1", "overrides.loss.scale"),
        ("overrides.sampling.top_p=0.9", "a cut distribution"),
        ("overrides.sampling.top_k=50", "a cut distribution"),
        ("overrides.sampling.reply_tokens=128", "leaves no tokens for a prompt"),
        ("modle.path=x", "did you mean"),
        ("settings.eval.devise=cpu", "did you mean settings.eval.device"),
        ("machine.device=tpu", "machine.device"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path, override, words):
    with pytest.raises(ConfigError) as error:
        toy(tmp_path, override)
    assert words in str(error.value)


def test_evaluation_settings_come_from_their_usual_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    found = load_training(write_toy(tmp_path), ["settings.loop.max_concurrency=7"])
    assert found.settings.home == tmp_path / "home"
    assert found.settings.loop.max_concurrency == 7


def test_the_train_command_refuses_contradictory_options(tmp_path, capsys):
    for arguments, words in (
        (["train", "rl"], "train needs a CONFIG"),
        (["train", "rl", "x", "--resume", "y"], "leave out CONFIG and --out"),
        (["train", "sft", str(tmp_path / "none.yaml")], "no such file or folder; name a YAML"),
        (["train", "rl", "--resume", str(tmp_path)], "no run: it has no events.jsonl"),
    ):
        assert cli.main(arguments, standalone_mode=False) in (2, 6)
        assert words in capsys.readouterr().err


def test_the_synthetic_world_lists_its_problems():
    world = SynthWorld()
    assert [problem.id for problem in world.problems("synth/3")] == [
        "synth/0",
        "synth/1",
        "synth/2",
    ]
    assert [problem.id for problem in world.problems("synth/5-6")] == ["synth/5", "synth/6"]
    with pytest.raises(ProblemError, match="this world has synth"):
        world.problems("rmsnorm")
    assert world.prompt(Material(world.problems("synth")[0])) == (
        Message(role="user", text="Write a fast kernel."),
    )


def test_held_out_problems_are_not_trained_on(tmp_path):
    config = toy(tmp_path, "data.problems=synth/6")
    with pytest.raises(
        ConfigError, match=r"data\.held_out has synth/5, whose reference is that of"
    ):
        TrainingRun(config, tmp_path, lambda *_: None)
