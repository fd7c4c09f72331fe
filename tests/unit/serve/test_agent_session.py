"""An agent session: the text that an agent reads, and the run folder that it leaves."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tilewright.config import Config
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.answer_evaluator import MAX_LOST_EVALUATIONS
from tilewright.problems.imported_sets import find_problems
from tilewright.problems.loader import bundled_names, find_problem
from tilewright.records import EvalReport, EvalRequest, Failed, Finding, Rejected, Unjudged
from tilewright.records.event_log import read_events
from tilewright.records.events import RequestsIssued, RunStarted, TurnFinished
from tilewright.serve.agent_problems import AgentProblems
from tilewright.serve.agent_session import AgentRun, fenced
from tilewright.serve.agent_text import MAX_EXPLANATION_CHARS, MAX_TURNS

CODE = reports.SOURCE
NO_ENTRY = "```python\nx = 1\n```\n```python\ny = 2\n```\n"
"""A reply of two blocks without the entry point. The evaluator judges neither of them."""
MakeSession = Callable[..., AgentRun]


def begun() -> RunStarted:
    return RunStarted(
        kind="mcp",
        name="agent",
        problems="add_relu",
        protocols=("strict",),
        evaluator="0.1.0",
        device="A processor",
    )


class Script:
    """Answers requests with these reports, the last again and again; an exception is raised."""

    def __init__(self, *answers: EvalReport | Exception) -> None:
        self.answers = list(answers)
        self.seen: list[EvalRequest] = []

    def __call__(self, request: EvalRequest) -> EvalReport:
        self.seen.append(request)
        answer = self.answers[min(len(self.seen), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer.model_copy(update={"request": request})


@pytest.fixture
def session(tmp_path: Path) -> Iterator[MakeSession]:
    """Yield a function that begins a run over a script; all are closed in the end."""
    runs: list[AgentRun] = []

    def session(*answers: EvalReport | Exception) -> AgentRun:
        settings = Config(runs=tmp_path / "runs")
        problem = find_problem("add_relu")
        runs.append(AgentRun(settings, problem, begun(), Script(*answers), retry_delay_s=0.0))
        return runs[-1]

    yield session
    for run in runs:
        run.close()


def test_a_logged_turn_can_be_read_before_it_is_on_disk(session, monkeypatch):
    run = session(reports.correct())
    run.evaluate(CODE)
    sync = os.fsync

    def slowly(fd: int) -> None:
        time.sleep(0.3)
        sync(fd)

    # What is written can be read before it is safe on the disk.
    monkeypatch.setattr(os, "fsync", slowly)
    thread = threading.Thread(target=run.evaluate, args=(CODE,))
    thread.start()
    limit = time.monotonic() + 60
    while (run.folder / "events.jsonl").read_text().count('"turn_finished"') < 2:
        assert time.monotonic() < limit
        time.sleep(0.01)
    history = run.history().text
    thread.join()

    assert "turn 2:" in history


def test_the_run_folder_is_created_with_the_first_evaluation(session):
    run = session(reports.correct())
    assert "No turn yet" in run.history().text
    assert "`evaluate`" in run.problem().text
    assert run.folder is None
    run.evaluate(CODE)
    run.evaluate("no code")
    assert run.folder is not None
    kinds = [type(event) for event in read_events(run.folder)]
    assert kinds == [RunStarted, RequestsIssued, TurnFinished, RequestsIssued, TurnFinished]
    _, _, first, _, second = read_events(run.folder)
    assert isinstance(first, TurnFinished)
    assert isinstance(second, TurnFinished)
    assert (first.turn.reply.model, first.turn.language) == ("agent", "torch")
    assert second.turn.ask.parents == (first.turn.ask.id,)


def test_the_best_candidate_has_the_highest_lower_end(session):
    fast = reports.correct()
    slow = fast.model_copy(update={"speedup": 1.1, "speedup_low": 1.05, "speedup_high": 1.2})
    run = session(slow, fast, slow)
    # Trials of equal code would be one candidate.
    first, second, third = (f"{CODE}\n# {number}\n" for number in range(3))
    assert run.evaluate(first).text.endswith("Best so far: turn 1, 1.10x [1.05, 1.20].")
    assert run.evaluate(second).text.endswith("Best so far: turn 2, 1.42x [1.36, 1.47].")
    assert run.evaluate(third).text.endswith("Best so far: turn 2, 1.42x [1.36, 1.47].")
    assert run.history().text.splitlines() == [
        "turn 1: correct, 1.10x [1.05, 1.20]",
        "turn 2: correct, 1.42x [1.36, 1.47]",
        "turn 3: correct, 1.10x [1.05, 1.20]",
        "",
        "Best so far: turn 2, 1.42x [1.36, 1.47].",
    ]


def test_an_unjudged_evaluation_is_a_tool_error(session):
    unjudged = Unjudged(
        reason="nondeterministic_reference", message="see /somewhere/secret/reference.py"
    )
    run = session(reports.report(unjudged), reports.correct())
    with pytest.raises(InfrastructureError, match="turn 1 could not be judged") as error:
        run.evaluate(CODE)
    assert "/somewhere" not in str(error.value)
    assert run.evaluate(CODE).text.startswith("Turn 2.")
    assert run.history().text.startswith("turn 1: unjudged, nondeterministic_reference")


def test_a_broken_machine_is_reported_and_the_run_continues(session):
    run = session(*[InfrastructureError("no_device")] * 3 * MAX_LOST_EVALUATIONS, reports.correct())
    for _ in range(MAX_LOST_EVALUATIONS):
        with pytest.raises(InfrastructureError, match="no_device"):
            run.evaluate(CODE)
    assert run.evaluate(CODE).text.startswith(f"Turn {MAX_LOST_EVALUATIONS + 1}.")
    # The last of them finished no turn.
    assert f"turn {MAX_LOST_EVALUATIONS}:" not in run.history().text


def test_a_stopped_session_judges_and_writes_nothing(session):
    run = session(reports.correct())
    run.evaluate(CODE)
    run.stop()
    with pytest.raises(InfrastructureError, match="the server ends"):
        run.evaluate(CODE)
    assert len(list(read_events(run.folder))) == 3


def test_an_explanation_is_longer_than_feedback_and_bounded(session):
    long = "\n".join(f"candidate.py:{n}: error: " + "x" * 90 for n in range(4000))
    failed = Failed(stage="build", reason="build", message=long)
    finding = Finding(
        check="unused_kernels", code="unused_kernel", summary="it is one", weight="decisive"
    )
    many = tuple(reports.case(f"hidden {n}") for n in range(500))
    run = session(
        reports.report(failed, candidate_output=long),
        reports.report(Rejected(findings=(finding,)), findings=(finding,), cases=many),
        reports.correct(),
    )
    for _ in range(3):
        run.evaluate(CODE)
    run.evaluate(NO_ENTRY)
    texts = [run.explain(number).text for number in (1, 2, 3, 4)]
    assert max(len(text) for text in texts) <= MAX_EXPLANATION_CHARS
    assert "candidate.py:0: error" in texts[0]
    assert "candidate.py:3999: error" in texts[0]
    assert "decisive: unused_kernels: it is one" in texts[1]
    assert "and 476 more" in texts[1]
    assert "Times:" in texts[2]
    assert "1.42x" in texts[2]
    assert "code" in texts[3]
    assert not [text for text in texts if reports.SEED in text]
    with pytest.raises(ConfigError, match="there is no turn 5; the last ones are: 1, 2, 3, 4"):
        run.explain(5)


def test_a_history_is_bounded(session):
    run = session(reports.correct())
    for _ in range(MAX_TURNS + 5):
        run.evaluate(NO_ENTRY)
    lines = run.history().text.splitlines()
    assert len(lines) == MAX_TURNS + 3
    assert lines[0] == "(5 earlier turns)"
    assert lines[-1] == "Best so far: none is correct yet."


@pytest.mark.parametrize(
    "code",
    [
        CODE,
        f'NOTE = """\n```\nnot the end\n```\n"""\n{CODE}',
        f"```python\n{CODE}```\n",
        f"\n````\n{CODE}````",
        CODE.replace("\n", "\r\n"),
    ],
)
def test_source_code_survives_its_markdown_fence(code):
    (file,) = parse_reply(fenced(code), "add_relu").files
    assert "torch.relu(x + y)" in file.text
    assert "NOTE" in file.text or "NOTE" not in code


def test_a_lone_surrogate_in_a_candidate_is_accepted(session):
    run = session(reports.correct())
    assert run.evaluate(f"# \ud83d\n{CODE}").text.startswith("Turn 1.")


def test_the_facts_of_an_answer_agree_with_its_text(session):
    run = session(reports.correct())
    made = run.evaluate(CODE)
    assert made.facts.model_dump() == {
        "turn": 1,
        "verdict": "correct",
        "reason": "library_call",
        "speedup": 1.42,
        "speedup_low": 1.36,
        "speedup_high": 1.47,
        "best_turn": 1,
    }
    assert "1.42x [1.36, 1.47]" in made.text
    assert run.history().facts.turns[0].turn == run.explain(1).facts.turn == 1
    assert run.best_code().facts.code == run.best_code().text
    assert run.problem().facts.entry in run.problem().text


def test_an_agent_works_on_one_problem_after_another(session):
    runs = {"softmax": session(reports.correct()), "add_relu": session(reports.correct())}
    agent = AgentProblems(runs.__getitem__, lambda: find_problems("bundled", Path("nowhere")))
    for use in (agent.history, agent.problem, agent.best_code):
        with pytest.raises(ConfigError, match="`choose_problem` chooses one"):
            use()
    assert [item.address for item in agent.problems("add relu").facts.problems] == ["add_relu"]
    assert agent.problems("no such").text == "No problem matches 'no such'."
    everything = agent.problems("")
    assert everything.facts.matching == len(everything.facts.problems) == len(bundled_names())
