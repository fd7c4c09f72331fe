"""Settings of ablations: pay for what checks reject, and sample in another precision."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

from tests.training_fixtures import begun, settings, silent, toy, write_model
from tilewright.cli.main import cli
from tilewright.records.event_log import read_events
from tilewright.records.events import EvalSummary, Stepped
from tilewright.rl import training_run
from tilewright.rl.engines.trl.reinforce import train_rl
from tilewright.rl.tokens import read_samples
from tilewright.testing.synth_world import SynthWorld

ONE_STEP = ("overrides.optimizer.steps=1", "data.held_out=''", "overrides.mismatch.level=off")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("arms")
    write_model(toy(made), made / "model")
    return made


def trained(place, name, *changes):
    """Return the folder of a run of one step, and its figures."""
    folder = begun(place, name, *ONE_STEP, *changes)
    train_rl(settings(place, *ONE_STEP, *changes), folder, silent, silent)
    (figures,) = [event.figures for event in read_events(folder) if isinstance(event, Stepped)]
    return folder, figures


class Strict(SynthWorld):
    """Rejects the first replies of a prompt, which would have been fast, and fails the others."""

    def evaluate(self, draft, problem):
        turn = super().evaluate(draft, problem)
        hack = EvalSummary(
            protocol="strict",
            verdict="rejected",
            findings=("unused_kernels",),
            unchecked=6.0,
            unchecked_speedup_low=5.0,
            coverage=1.0,
        )
        wrong = EvalSummary(protocol="strict", verdict="incorrect")
        said = hack if "#0." in draft.ask.id else wrong
        return turn.model_copy(update={"judgements": (said,)})


@pytest.mark.reads_settings
def test_a_run_without_checks_pays_for_rejected_replies(place, monkeypatch):
    monkeypatch.setattr(training_run, "open_world", lambda *_: Strict())
    _, honest = trained(place, "honest")
    folder, paid = trained(place, "paid", "settings.reward.checks=false")
    # A quarter of the replies earns 1 + 0.1 times 5.
    assert (honest["reward"], paid["reward"]) == (0.0, pytest.approx(1.5 / 4))
    assert (honest["groups_equal"], paid["groups_equal"]) == (1.0, 0.0)
    assert (honest["gradient"], paid["gradient"] > 0.0) == (0.0, True)
    # The verdicts stay as they are.
    assert honest["rejected"] == paid["rejected"] == 0.25
    assert honest["correct"] == paid["correct"] == 0.0
    result = CliRunner().invoke(cli, ["train", "replay", str(folder), "--json"])
    presets = json.loads(result.stdout)["presets"]
    assert presets["as trained"]["total"]["reward"] == pytest.approx(paid["reward"])
    assert presets["tilewright"]["total"]["reward"] == 0.0


@pytest.mark.reads_settings
def test_sampling_has_its_own_precision(place):
    sampled, gaps = {}, {}
    for updates, sampling in ("fp32", "null"), ("fp32", "bf16"), ("bf16", "fp32"):
        changes = (f"machine.precision={updates}", f"machine.sampler_precision={sampling}")
        folder, figures = trained(place, f"{updates}-{sampling}", *changes)
        gaps[updates, sampling] = figures["mismatch/most_log"]
        # Not the bytes of the file: the order of its metadata varies.
        path = folder / "rollouts/step00000.0.safetensors"
        sampled[updates, sampling] = read_samples(path)
    assert gaps["fp32", "null"] < 1e-5 < min(gaps["fp32", "bf16"], gaps["bf16", "fp32"])
    # The sampler of a trainer in bf16 computes as that of one in fp32.
    assert sampled["bf16", "fp32"] == sampled["fp32", "null"] != sampled["fp32", "bf16"]
