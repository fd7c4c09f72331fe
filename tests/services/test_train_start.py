"""`train` refuses wrong settings before a run folder exists, and names the command that resumes."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

from importlib.util import find_spec

import pytest
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(300)]

from tests.training_fixtures import toy, write_model
from tests.unit.integrations.logger_stores import curves
from tilewright.cli.main import cli
from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.devices import gpus
from tilewright.rl import training_run
from tilewright.testing.synth_world import SynthWorld


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = tmp_path_factory.mktemp("start")
    write_model(toy(made), made / "model")
    (made / "rows.jsonl").write_text('{"messages": [{"role": "user", "content": "?"}]}\n')
    (made / "bare").mkdir()
    return made


def train(place, out, verb, *overrides):
    given = [word for text in overrides for word in ("--set", text)]
    words = ["train", verb, str(place / "toy.yaml"), "--out", str(out), *given]
    return CliRunner().invoke(cli, words)


@pytest.mark.skipif(bool(gpus()), reason="this machine has a GPU")
@pytest.mark.parametrize("verb", ["sft", "rl"])
def test_a_gpu_that_is_not_there_is_refused_before_a_run_folder_exists(place, tmp_path, verb):
    out = tmp_path / "runs"
    found = train(place, out, verb, f"model.path={place / 'model'}", "machine.device=cuda")
    assert found.exit_code == 4
    assert "cuda is not here" in found.output
    assert not out.exists()


def test_an_empty_model_path_names_the_setting_and_where_a_model_comes_from(place, tmp_path):
    found = train(place, tmp_path / "runs", "rl")
    assert found.exit_code == 2
    assert "model.path is empty" in found.output
    assert "train sft leaves one in RUN/model" in found.output
    assert not (tmp_path / "runs").exists()


@pytest.mark.reads_settings
@pytest.mark.parametrize(
    ("verb", "override", "code"),
    [
        ("rl", "model.path=nowhere", 2),
        ("rl", "model.path={place}/bare", 2),
        ("rl", "data.problems=nothing", 3),
        ("rl", "data.held_out=nothing", 3),
        ("rl", "data.held_out=synth", 2),
        ("rl", "world=nothing", 2),
        ("rl", "settings.home={place}/toy.yaml/home", 2),
        ("rl", "model.lora={{rank: 2, targets: nothing}}", 2),
        ("sft", "model.from_scratch.hidden=66", 2),
        ("sft", "data.conversations=[nowhere.jsonl]", 2),
        ("sft", "data.conversations=[{place}/rows.jsonl]", 6),
    ],
)
def test_a_wrong_setting_leaves_no_run_folder_and_no_advice_to_resume(
    place, tmp_path, verb, override, code
):
    path = [f"model.path={place / 'model'}"] if verb == "rl" else []
    world = ["world=evaluator", "data.held_out=''"] if "home" in override else []
    out = tmp_path / "runs"
    found = train(place, out, verb, *path, *world, override.format(place=place))
    assert found.exit_code == code, found.output
    assert not out.exists() or not list(out.iterdir())
    assert "resume" not in found.output


class Failing(SynthWorld):
    """Judges some replies, and then no more."""

    left = 20

    def evaluate(self, draft, problem):
        self.left -= 1
        if self.left < 0:
            raise InfrastructureError("the judge is gone")
        return super().evaluate(draft, problem)


def test_the_command_that_resumes_is_named_once_replies_were_sampled(place, tmp_path, monkeypatch):
    monkeypatch.setattr(training_run, "open_world", lambda *_: Failing())
    out = tmp_path / "runs"
    found = train(place, out, "rl", f"model.path={place / 'model'}", "overrides.mismatch.level=off")
    assert found.exit_code == 4, found.output
    (run,) = out.iterdir()
    assert f"to resume: tilewright train rl --resume {run}" in found.output
    assert list((run / "rollouts").iterdir())


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_a_logger_that_is_not_installed_is_named_with_its_command(place, tmp_path):
    out = tmp_path / "runs"
    found = train(place, out, "rl", f"model.path={place / 'model'}", "health.log=wandb")
    assert found.exit_code == 2
    assert "health.log names wandb: the integration needs the package wandb" in found.output
    assert "pip install 'tilewright[wandb]'" in found.output
    assert not out.exists()


def test_a_training_sends_its_steps_to_a_logger(place, tmp_path):
    pytest.importorskip("tensorboard")
    model = f"model.path={place / 'model'}"
    changes = ("health.log=tensorboard", "overrides.optimizer.steps=1", "data.held_out=''")
    found = train(place, tmp_path / "runs", "rl", model, *changes)
    assert found.exit_code == 0, found.output
    (run,) = (tmp_path / "runs").iterdir()
    shown = curves("tensorboard", run, run.name, "")
    assert [step for step, _ in shown["train/reward"]] == [1]
    assert shown["turns"][0][1] > 1
