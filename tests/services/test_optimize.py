"""`tilewright optimize` as a user runs it: finished, interrupted, out of budget, resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tilewright.records.event_log import read_events
from tilewright.records.events import RequestsIssued, TurnFinished

POLICY = """
import time

GOOD = "```python\\nimport torch\\ndef softmax(x):\\n    return torch.softmax(x, -1)  # %d\\n```"


def answer(messages, ask):
    time.sleep({pause})
    return "nothing yet" if ask.turn == 0 else GOOD % ask.turn
"""
pytestmark = pytest.mark.slow
QUICK = ("--set", "eval.timing.enabled=false", "--set", "loop.max_concurrency=1")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "policy.py").write_text(POLICY.format(pause=0.05))
    return tmp_path


def start(place: Path, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tilewright", "optimize", *words]
    environment = {**os.environ, "TILEWRIGHT_HOME": str(place / "home")}
    return subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where a shell has put us in the background an interrupt would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def begin(place: Path, *words: str) -> subprocess.Popen[str]:
    model = ("--model", f"scripted:{place / 'policy.py'}", "--out", "runs")
    return start(place, "softmax", *model, *QUICK, *words)


def ended(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    out, err = process.communicate(timeout=240)
    assert process.returncode == code, err
    return out, err


def run_of(place: Path) -> Path:
    (path,) = (place / "runs").iterdir()
    return path


def verdicts(run: Path) -> list[str]:
    turns = [event.turn for event in read_events(run) if isinstance(event, TurnFinished)]
    return [turn.judgements[0].verdict for turn in turns]


def told(run: Path) -> list[str]:
    return [event.turn.ask.id for event in read_events(run) if isinstance(event, TurnFinished)]


def test_a_run_ends_with_a_best_candidate_that_runs_standalone(place):
    out, err = ended(begin(place, "--turns", "3", "--json"))
    assert "tilewright: turn 1, bundled/softmax#0.0: " in err
    document = json.loads(out)
    assert (document["turns"], document["ended_for"]) == (3, None)
    (winner,) = document["winners"].values()
    assert (winner["verdict"], winner["reason"]) == ("correct", None)
    path = place / winner["file"]
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("agrees; "), done.stderr


def test_an_interrupted_run_resumes_without_a_lost_or_repeated_turn(place):
    (place / "policy.py").write_text(POLICY.format(pause=1.0))
    process = begin(place, "--turns", "5")
    limit = time.monotonic() + 120
    while not list(place.glob("runs/*/events.jsonl")) or len(told(run_of(place))) < 2:
        assert time.monotonic() < limit
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = ended(process, 130)
    run = run_of(place)
    assert f"--resume {run.relative_to(place)}" in err
    before = told(run)
    (place / "policy.py").write_text(POLICY.format(pause=0.05))
    ended(start(place, "--resume", str(run)))
    after = told(run)
    assert after[: len(before)] == before
    assert after == [f"bundled/softmax#0.{number}" for number in range(5)]
    asked = [ask.id for e in read_events(run) if isinstance(e, RequestsIssued) for ask in e.asks]
    assert asked == after


def test_a_budget_ends_a_session_and_a_larger_budget_continues(place):
    _, err = ended(begin(place, "--turns", "4", "--max-turns", "2"))
    run = run_of(place)
    assert "the budget of turns is used up" in err
    assert len(told(run)) == 2
    ended(start(place, "--resume", str(run), "--max-turns", "4"))
    assert len(told(run)) == 4


def test_wall_time_ends_running_turns_which_are_repeated_on_resume(place):
    (place / "policy.py").write_text(POLICY.format(pause=2.0))
    _, err = ended(begin(place, "--turns", "3", "--max-wall-s", "3"), 1)
    run = run_of(place)
    assert "the budget of wall_s is used up" in err
    some = len(told(run))
    assert some < 3
    (place / "policy.py").write_text(POLICY.format(pause=0.0))
    ended(start(place, "--resume", str(run), "--max-wall-s", "200"))
    assert told(run) == [f"bundled/softmax#0.{number}" for number in range(3)]
    # What was cut off by the clock has no verdict from then.
    assert verdicts(run) == ["failed", "correct", "correct"]


def test_a_resumed_run_refuses_changed_settings(place):
    ended(begin(place, "--turns", "2", "--max-turns", "1"), 1)
    for setting in ("eval.protocol=official", "loop.feedback=paper"):
        _, err = ended(start(place, "--resume", str(run_of(place)), "--set", setting), 2)
        assert setting.partition("=")[0] in err


@pytest.mark.parametrize(
    ("words", "says"),
    [(("--max-usd", "1"), "prices"), (("--max-device-s", "5"), "loop.eval_timeout_s")],
)
def test_an_invalid_budget_is_refused(place, words, says):
    _, err = ended(begin(place, *words), 2)
    assert says in err


def test_a_failing_model_ends_the_run_and_is_named(place):
    (place / "policy.py").write_text("def answer(messages, ask):\n    raise OSError('no model')\n")
    _, err = ended(begin(place, "--turns", "3"), 5)
    assert "no model" in err
    assert told(run_of(place)) == []
