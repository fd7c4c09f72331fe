"""A small study end to end: real trainings, kills, the gate, and the page from its log."""

# ruff: noqa: E402 - a machine without trl skips all of it
from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml
from click.testing import CliRunner

pytest.importorskip("trl")
pytestmark = [
    *(pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)),
    pytest.mark.slow,
]

from tilewright.cli.main import cli
from tilewright.families.nano.problem_files import compositions_of, reference_of
from tilewright.families.nano.program_slots import space
from tilewright.families.nano.program_text import render
from tilewright.records.event_log import read_events, turns_of
from tilewright.rl.book_world import MAX_FEEDBACK_CHARS
from tilewright.rl.data.cold_start import cold_start
from tilewright.rl.engines.trl.models import fresh_tokenizer
from tilewright.rl.study.arm_faults import failures_of, stopped_because
from tilewright.rl.study.references import judged_turns
from tilewright.rl.study.study_config import load_study
from tilewright.rl.study.study_folder import figures_of, finished_model, run_in
from tilewright.rl.study.study_log import LOG, read_log
from tilewright.rl.synthetic_verdicts import synthetic_store
from tilewright.rl.training_config import FreshSection

SMALL = {
    "name": "small",
    "last_steps": 1,
    "reference": "base",
    "scaling": {"arm": "base", "turns": 3, "samples": 2, "w": 1},
    "directions": [],
    "arms": {"base": {}, "odd": {"changes": {"overrides.mismatch.low": 1.5,
                                             "overrides.mismatch.high": 1.6}}},
    "cold_start": {"conversations": 48},
    "gate": {"trajectories": 8, "turns": 2, "override": True},
    "training": {
        "overrides": {
            "sampling": {
                "prompts": 2, "rollouts": 2, "turns": 2, "context_tokens": 512, "reply_tokens": 24,
            },
            "optimizer": {"steps": 2},
            "sft": {"batch": 16, "epochs": 1},
        },
        "model": {
            "from_scratch": {"hidden": 32, "layers": 1, "heads": 2, "positions": 512,
                             "vocabulary": 1000},
        },
        "checkpoints": {"every": 1},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    tree = load_study("nano-rehearsal.yaml").model_dump(mode="json") | SMALL
    path = tmp_path_factory.mktemp("study") / "small.yaml"
    path.write_text(yaml.safe_dump(tree))
    return path


def invoke(*words):
    return CliRunner().invoke(cli, ["train", *map(str, words)])


def begin(config, folder):
    words = ["train", "study", str(config), "--out", str(folder), "--minutes", "5"]
    return subprocess.Popen(
        [sys.executable, "-m", "tilewright", *words], stderr=subprocess.PIPE, text=True
    )


def wait_for(happened):
    until = time.monotonic() + 300
    while not (found := happened()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def kill_base(process):
    """Kill the process of the arm `base`, which a study runs."""

    def found():
        # A process that has just ended has no words.
        with suppress(psutil.Error):
            words = [(each, each.cmdline()) for each in psutil.Process(process.pid).children()]
            return [each for each, line in words if "rl" in line and "base-0" in " ".join(line)]

    wait_for(found)[0].kill()


@pytest.fixture(scope="module")
def study(config):
    """Return the folder of a study whose arm was killed, and then the study itself."""
    folder = config.parent / "study"
    process = begin(config, folder)
    kill_base(process)
    _, said = process.communicate()
    assert process.returncode == 4, said
    assert "arm base, seed 0: signal 9 ended it" in said
    # The other arm does not wait for it.
    assert stopped_because(folder / "arms" / "odd-0")
    assert not stopped_because(folder / "arms" / "base-0")
    process = begin(config, folder)
    wait_for(lambda: figures_of(folder / "arms" / "base-0"))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    done = invoke("study", config, "--out", folder, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["complete"]
    return folder


def test_a_killed_study_continues_and_trains_every_step_once(study):
    assert len(figures_of(study / "arms" / "base-0")) == 2
    assert finished_model(study / "arms" / "base-0") is not None
    # Two steps of two prompts, two rollouts and two turns.
    assert len(judged_turns(study / "arms" / "base-0")) == 16
    assert [row["stops"] for row in failures_of(study / "arms" / "base-0")] == [False]
    assert "| base | 0 | 2 |" in (study / "page.md").read_text()


def test_an_arm_that_cannot_go_on_is_stopped_and_the_page_shows_why(study):
    """Mismatch rejection with bounds above 1 keeps nothing."""
    page = (study / "page.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("| odd | 0 | 0 |"))
    assert "mismatch" in row.rpartition(" | ")[2]


def test_the_page_is_drawn_again_from_the_log_byte_for_byte(study, tmp_path):
    log = study / LOG
    done = invoke("study", "--page-only", "--logs", log, "--out", tmp_path / "again")
    assert done.exit_code == 0, done.output
    names = [path.name for path in (tmp_path / "again").iterdir()]
    assert "page.md" in names
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (study / name).read_bytes()


def test_contexts_share_their_first_turns_and_differ_later(study):
    found = read_log(study / LOG)["scaling"]
    assert list(found) == ["vanilla", "last_w", "top_w"]
    shown = {}
    for context in found:
        run = run_in(study / "scaling" / context)
        turns = turns_of(read_events(run))
        shown[context] = {turn.ask.id: turn.reply.text for turn in turns if turn.ask.turn == 0}
        assert len(shown[context]) == 4
        assert {len(turn.ask.shown_turns) for turn in turns if turn.ask.turn == 2} == {
            2 if context == "vanilla" else 1
        }
    assert shown["vanilla"] == shown["last_w"] == shown["top_w"]


def test_the_gate_prints_its_lines_and_fails_with_a_status(study):
    done = invoke("gate", study, "--json")
    rows = json.loads(done.stdout)
    assert done.exit_code == (0 if all(row["held"] for row in rows) else 1)
    # A model after 3 steps writes no correct program.
    assert not {row["name"]: row["held"] for row in rows}["correct"]


def test_other_settings_are_refused_with_their_name(study, config, tmp_path):
    tree = yaml.safe_load(config.read_text()) | {"last_steps": 5}
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(tree))
    done = invoke("study", other, "--out", study)
    assert done.exit_code == 2
    assert "another value of last_steps" in done.output


def test_a_failing_gate_runs_no_arm(study, config, tmp_path):
    tree = yaml.safe_load(config.read_text())
    tree["gate"]["override"] = False
    strict, folder = tmp_path / "strict.yaml", tmp_path / "strict"
    strict.write_text(yaml.safe_dump(tree))
    # The cold start is that of the other study.
    folder.mkdir()
    (folder / "cold").symlink_to(study / "cold")
    done = invoke("study", strict, "--out", folder)
    assert done.exit_code == 1, done.output
    assert "no arm was run" in done.output
    assert "change cold_start.mix" in done.output
    assert not (folder / "arms").exists()


def test_three_turns_of_the_study_on_a_gpu_fit_into_its_context():
    """No program of the family is cut off, and the longest conversation has room."""
    found = load_study("nano.yaml")
    sampling = found.training["overrides"]["sampling"]
    store = synthetic_store(Path("synthetic.gz"), "train")
    rows = cold_start(
        "train", store, found.cold_start.shares(), count=1500, turns=3, seed=0, extent="census"
    )
    texts = [message["content"] for row in rows for message in row["messages"]]
    section = FreshSection(**found.training["model"]["from_scratch"])
    tokenizer = fresh_tokenizer(texts, section)
    count = lambda text: len(tokenizer(text)["input_ids"])  # noqa: E731
    problems = [item for group in ("train", "held_out") for item in compositions_of(group)]
    programs = [count(render(program)) for item in problems for program in space(item)]
    # The end token is one more.
    assert max(programs) < sampling["reply_tokens"]
    assert statistics.median(programs) >= 40
    roles = sampling["turns"] * 2
    longest = max(count(reference_of(item)) for item in problems)
    longest += sampling["turns"] * sampling["reply_tokens"] + roles
    longest += (sampling["turns"] - 1) * MAX_FEEDBACK_CHARS
    assert longest <= sampling["context_tokens"] <= section.positions
