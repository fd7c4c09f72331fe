"""The winner of a search: the race before it, and the file that runs on its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tests.unit.loop.test_history import judged
from tilewright.config import load
from tilewright.loop.final_measurement import race_best, standalone
from tilewright.loop.run_state import begin_session
from tilewright.problems.loader import find_problem
from tilewright.records import SourceFile
from tilewright.records.events import Turn
from tilewright.testing.strategy_checks import BEGUN, PROBLEM

MODEL = """import itertools

CODE = '''```python
import torch  # NUMBER


def softmax(x):
    return torch.softmax(x, -1)
```'''
NUMBERS = itertools.count()


def answer(messages, ask):
    return CODE.replace("NUMBER", str(next(NUMBERS)))
"""


def test_a_winner_without_a_rival_needs_no_race(tmp_path):
    settings = load(environ={})
    session = begin_session(tmp_path, BEGUN, [PROBLEM], settings)
    best, slow = judged("a", 2.0), judged("b", 1.0)
    won = race_best(session, settings, [best, slow], best, lambda _: None)
    assert (won.turn, won.candidates, won.trials) == (best, 0, 0)


def test_the_next_best_wins_if_every_candidate_of_a_race_fails(tmp_path):
    problem = find_problem("add_relu")
    session = begin_session(tmp_path, BEGUN, [problem], load(environ={}))
    settings = load(environ={}, overrides=[f"home={tmp_path / 'home'}"])

    def recorded(name: str, speedup: float, text: str) -> Turn:
        """Return a turn that was correct once; `text` is what a new trial gets."""
        file = SourceFile(path="candidate.py", text=text)
        candidate = reports.request().candidate.model_copy(update={"files": (file,)})
        report = reports.report(request=reports.request(candidate=candidate))
        path = Path("reports") / f"{name}.json"
        (session.folder / "reports").mkdir(exist_ok=True)
        (session.folder / path).write_text(report.to_json())
        turn = judged(name, speedup)
        said = turn.judgements[0].model_copy(update={"report": str(path)})
        ask = turn.ask.model_copy(update={"problem": problem.id})
        return turn.model_copy(update={"ask": ask, "judgements": (said,)})

    broken = [recorded(name, speedup, "def (") for name, speedup in (("a", 2.0), ("b", 1.95))]
    third = recorded("c", 1.0, reports.SOURCE)
    won = race_best(session, settings, [*broken, third], broken[0], lambda *_: None)
    assert (won.turn.ask.id, won.candidates, won.trials) == ("c", 2, 2)


@pytest.mark.nightly
def test_candidates_that_may_be_the_best_race(tmp_path):
    """`test_equal_candidates_tie` and its neighbours have the rule, without a judge."""
    (tmp_path / "model.py").write_text(MODEL)
    words = ["loop.strategy=best_of_n", "loop.race_trials=4", "eval.timing.max_s=0.5"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tilewright", "optimize", "softmax", "--json", "--turns", "2"),
            *("--model", "scripted:model.py", *(part for w in words for part in ("--set", w))),
        ],
        cwd=tmp_path,
        env={**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    race = json.loads(done.stdout)["races"]["bundled/softmax"]
    # Two copies of one program may look different, and then nobody races.
    assert race in ({"candidates": 2, "trials": 4}, {"candidates": 0, "trials": 0})
    if race["trials"]:
        assert "bundled/softmax: 2 candidates raced in 4 trials" in done.stderr


@pytest.mark.parametrize("name", ["softmax", "conv_relu_pool"])
def test_a_best_candidate_runs_standalone(name, capsys):
    problem = find_problem(name)
    if problem.kind == "module":
        text = problem.source.text + f"\n\n{problem.entry} = Model\n"
    else:
        text = problem.source.text + f"\n\n{problem.entry} = reference\n"
    candidate = reports.request().candidate
    file = candidate.files[0].model_copy(update={"text": text})
    candidate = candidate.model_copy(update={"files": (file,), "entry": problem.entry})
    source = standalone(problem, candidate)
    exec(compile(source, "winner.py", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith("agrees; reference ")
