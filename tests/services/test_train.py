"""Training from end to end: killed runs, a dead judge, and the resulting model."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl")
pytestmark = [
    *(pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)),
    pytest.mark.slow,
]

from tests.conventions.tree import SOURCE
from tests.services.killed_training import train_until_killed
from tests.training_fixtures import begun, cold_start, settings, silent, toy, weights
from tilewright.config import ModelSection
from tilewright.errors import InfrastructureError
from tilewright.loop.policies.base import Message
from tilewright.loop.policies.factory import choose_policy
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, EvalSummary, RequestsIssued, Stepped, TurnFinished
from tilewright.reports.turn_view import Turns
from tilewright.reports.viewer_server import exported
from tilewright.rl import training_run
from tilewright.rl.engines.trl.checkpoints import COMPLETE, latest
from tilewright.rl.engines.trl.reinforce import train_rl
from tilewright.rl.engines.trl.sft import train_sft
from tilewright.rl.tokens import TokenSample
from tilewright.rl.training_rows import turns_of
from tilewright.testing.synth_world import SynthWorld

TURNS = 16
"""Of a step: two prompts, four rollouts, two turns."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return cold_start(tmp_path_factory.mktemp("train"))


@pytest.fixture(scope="module")
def whole(place):
    """Return a run that nothing interrupted."""
    folder = begun(place, "whole")
    train_rl(settings(place), folder, print, silent)
    return folder


def told(folder):
    return [event.turn for event in read_events(folder) if isinstance(event, TurnFinished)]


@pytest.mark.parametrize(
    ("where", "count", "from_step"),
    [
        ("judging", 2 * TURNS + 5, 2),
        ("judging", 3 * TURNS + 13, 2),
        ("saving", 4, 2),
        ("logged", 3, 2),
    ],
)
def test_a_killed_run_resumes_with_the_same_result(place, whole, where, count, from_step):
    folder = begun(place, f"{where}{count}")
    assert train_until_killed(folder, where, count) == -9
    before = [turn.ask.id for turn in told(folder)]
    sampled = {path: path.stat().st_mtime_ns for path in (folder / "rollouts").iterdir()}
    if where == "saving":
        half = folder / "checkpoints" / "checkpoint-4"
        assert half.is_dir()
        assert not (half / COMPLETE).exists()
    found = latest(folder / "checkpoints")
    assert found is not None
    assert Path(found).name == f"checkpoint-{from_step}"
    train_rl(settings(place), folder, print, silent)
    after = [turn.ask.id for turn in told(folder)]
    assert after[: len(before)] == before
    assert len(set(after)) == len(after) == 4 * TURNS + 8
    steps = [(e.batch, e.step) for e in read_events(folder) if isinstance(e, Stepped)]
    assert sorted(steps) == [
        ("score00004", 4),
        *((f"step{number:05}", number + 1) for number in range(4)),
    ]
    assert all(path.stat().st_mtime_ns == then for path, then in sampled.items())
    assert weights(folder) == weights(whole)


@pytest.mark.reads_settings
def test_every_step_logs_its_metrics(whole):
    events = list(read_events(whole))
    stepped = [event for event in events if isinstance(event, Stepped)]
    assert [event.step for event in stepped if event.batch.startswith("step")] == [1, 2, 3, 4]
    scores = [event for event in stepped if event.batch.startswith("score")]
    assert [event.step for event in scores] == [4]
    assert scores[0].figures["turns"] == 8
    stepped = [event for event in stepped if event not in scores]
    assert any(event.figures["gradient"] for event in stepped), "else equal weights say nothing"
    figures = stepped[0].figures
    for name in (
        *("reward", "unjudged", "unique", "entropy", "gradient", "kl", "kept_mismatch"),
        *("turn1/pass@4", "turn2/fast@1.2", "mismatch/most_log", "seconds/update", "rejected"),
    ):
        assert figures[name] is not None, name
    assert 0.0 <= figures["groups_equal"] < 1.0
    assert figures["mismatch/within_0.001"] == 1.0
    assert figures["kl"] == pytest.approx(0.0, abs=1e-9)
    assert abs(figures["mismatch/most_log"]) < 1e-4
    assert all(turn.reply is not None and not turn.reply.tokens for turn in told(whole))


def test_another_seed_gives_other_weights(place, whole):
    folder = begun(place, "seed", "seed=4")
    train_rl(settings(place, "seed=4"), folder, print, silent)
    assert weights(folder) != weights(whole)


class Dying(SynthWorld):
    """Judges so often, and then no more."""

    def __init__(self, count, *, raises):
        self.left = count
        self.raises = raises

    def evaluate(self, draft, problem):
        self.left -= 1
        if self.left >= 0:
            return super().evaluate(draft, problem)
        if self.raises:
            raise InfrastructureError("the judge is gone")
        said = EvalSummary(protocol="strict", verdict="unjudged", reason="the judge is gone")
        return super().evaluate(draft, problem).model_copy(update={"judgements": (said,)})


@pytest.mark.parametrize("raises", [True, False])
def test_a_dead_judge_stops_the_run_which_can_be_resumed(place, whole, monkeypatch, raises):
    folder = begun(place, f"dead{raises}")
    with monkeypatch.context() as patch:
        world = Dying(TURNS + 11, raises=raises)
        patch.setattr(training_run, "open_world", lambda *_: world)
        with pytest.raises(InfrastructureError, match="the judge is gone") as error:
            train_rl(settings(place), folder, print, silent)
    if not raises:
        assert "of 16 turns" in str(error.value)
        assert "resume" in str(error.value)
    asks = [a.id for e in read_events(folder) if isinstance(e, RequestsIssued) for a in e.asks]
    assert len(set(asks)) == len(asks)
    train_rl(settings(place), folder, print, silent)
    assert weights(folder) == weights(whole)


def test_a_step_with_few_unjudged_turns_warns_and_continues(place, monkeypatch):
    lines = []
    overrides = ("health.stop_unjudged=0.2", "overrides.optimizer.steps=1", "data.held_out=''")
    folder = begun(place, "few", *overrides)
    monkeypatch.setattr(training_run, "open_world", lambda *_: Dying(TURNS - 1, raises=False))
    train_rl(settings(place, *overrides), folder, lines.append, silent)
    assert any("6.2% of the turns could not be judged" in line for line in lines)


@pytest.mark.reads_settings
def test_supervised_training_lowers_the_loss_and_leaves_a_usable_policy(place):
    folder = place / "sft"
    folder.mkdir()
    document = train_sft(toy(place, "overrides.sft.epochs=1"), folder, silent)
    assert document["last_loss"] < document["first_loss"]
    turns = Turns(folder)
    losses = [item["figures"]["loss"] for item in turns.steps()]
    assert (losses[0], losses[-1]) == (document["first_loss"], document["last_loss"])
    assert '"kind":"training"' in exported(turns)
    policy = choose_policy(f"local:{document['model']}", ModelSection(max_tokens=20, seed=1))
    try:
        message = Message(role="user", text="Write a fast kernel.")
        reply = policy.answer([message], Ask(id="p#0.0", problem="p"))
        assert 0 < len(reply.tokens) <= 20
    finally:
        policy.close()


def test_the_train_command_trains(place):
    tool = [sys.executable, "-m", "tilewright", "train", "rl"]
    command = [
        *(*tool, str(place / "toy.yaml"), "--json", "--set", f"model.path={place / 'model'}"),
        *("--set", "overrides.optimizer.steps=1"),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=200)
    assert answer.returncode == 0, answer.stderr[-2000:]
    document = json.loads(answer.stdout)
    assert document["steps"] == 1
    assert (place / document["model"] / "model.safetensors").is_file()
    assert "step 1 of 1: reward" in answer.stderr


class Copyist:
    """Writes a bundled candidate, then nothing usable. Lifetime: one test."""

    name = "copyist"

    def __init__(self, text):
        self.text = text
        self.shown = []
        self.sampled = []

    def encode(self, messages):
        self.shown.append(messages)
        return list("".join(item.text for item in messages).encode())

    def decode(self, reply):
        return bytes(reply).decode()

    def sample(self, prompts, seed, sampling):
        texts = [
            self.text if place == 0 else "I would rather not." for place in range(len(prompts))
        ]
        assert (seed, sampling.temperature) == (f"3/step00000/{len(self.sampled)}", 1.0)
        self.sampled.append(len(prompts))
        return [
            TokenSample(tuple(prompt), tuple(text.encode()), (-1.0,) * len(text.encode()), "stop")
            for prompt, text in zip(prompts, texts, strict=True)
        ]


def test_the_evaluator_world_judges_real_kernels(tmp_path):
    bundled = SOURCE / "problems" / "bundled" / "rmsnorm"
    source = bundled / "candidates" / "torch_functional.py"
    copyist = Copyist(f"```python\n{source.read_text(encoding='utf-8')}\n```\n")
    config = toy(
        tmp_path,
        *(
            "world=evaluator",
            "data.problems=rmsnorm",
            "data.held_out=''",
            "require_custom_kernel=false",
        ),
        *("overrides.sampling.context_tokens=30000", "overrides.sampling.reply_tokens=4000"),
        *("overrides.sampling.prompts=1", "overrides.sampling.rollouts=2"),
        *("settings.eval.timing.enabled=false", f"settings.home={tmp_path / 'home'}"),
    )
    folder = tmp_path / "run"
    folder.mkdir()
    made = training_run.TrainingRun(config, folder, silent)
    try:
        played = made.play(0, copyist)
    finally:
        made.close()
    verdicts = [[turn.judgements[0].verdict for turn in row] for row in played.turns]
    assert verdicts == [["correct", "correct"], ["failed", "failed"]]
    assert (folder / played.turns[0][0].judgements[0].report).is_file()
    turns = turns_of(played, made.preset, seed=0)
    assert turns.rewards.values.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    second = [messages for messages in copyist.shown if len(messages) == 3]
    assert any("Verdict: correct" in messages[2].text for messages in second)
    assert any("there is no code" in messages[2].text for messages in second)


def test_the_runs_of_supervised_training_open_as_reports(place):
    tool = [sys.executable, "-m", "tilewright"]
    where = {"capture_output": True, "text": True, "cwd": place, "timeout": 200}
    words = ["train", "sft", "toy.yaml", "--json", "--set", "overrides.sft.epochs=1"]
    answer = subprocess.run([*tool, *words], **where)
    assert answer.returncode == 0, answer.stderr[-2000:]
    document = json.loads(answer.stdout)
    # The next command can be copied.
    assert f"tilewright train rl toy.yaml --set model.path={document['model']}" in answer.stderr
    report = subprocess.run([*tool, "report", document["run"]], **where)
    assert report.returncode == 0, report.stderr
    assert (place / document["run"] / "report.html").is_file()


def test_the_phases_of_a_step_are_shown(place):
    overrides = ("overrides.optimizer.steps=2", "data.held_out=''")
    folder = begun(place, "phases", *overrides)
    seen: list[tuple[int, int, str]] = []
    train_rl(
        settings(place, *overrides), folder, print, silent, reached=lambda *at: seen.append(at)
    )
    names = [(done, total, phase.partition(",")[0]) for done, total, phase in seen]
    sampling, updating = "sampling and judging replies", "updating the model"
    assert names == [
        (0, 2, f"step 1: {sampling}"),
        (0, 2, f"step 1: {updating}"),
        (1, 2, "step 1: saving"),
        (1, 2, f"step 2: {sampling}"),
        (1, 2, f"step 2: {updating}"),
        (2, 2, "step 2: saving"),
    ]
    assert "tokens/s" in seen[3][2]
