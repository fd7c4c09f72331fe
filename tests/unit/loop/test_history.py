"""The history: estimates at the moment of a request, failed attempts, and equal code."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tilewright.loop.history import RecordedHistory
from tilewright.loop.judged_once import JudgedOnce
from tilewright.loop.strategies.base import FixedList
from tilewright.records.events import Ask, EvalSummary, Reply, Turn


def ask_of(name: str, **more) -> Ask:
    return Ask(id=name, problem="p", **more)


def judged(name: str, speedup: float | None, source: str = "", **more) -> Turn:
    verdict = "incorrect" if speedup is None else "correct"
    low, high = (speedup * 0.9, speedup * 1.1) if speedup else (None, None)
    summary = EvalSummary(
        protocol="strict",
        verdict=verdict,
        reason="at 0",
        speedup=speedup,
        low=low,
        high=high,
        seconds=2.0,
    )
    return Turn(
        ask=ask_of(name, **more),
        source=source or name,
        reply=Reply(text=name),
        judgements=(summary,),
    )


def test_a_prompt_shows_the_estimates_of_the_moment_of_its_request():
    history = RecordedHistory(
        FixedList([ask_of("b", shown_turns=("a",)), ask_of("c", parents=("a",))])
    )
    history.tell(judged("a", 2.0))
    history.ask(1)
    history.tell(judged("again", 4.0, source="a", role="measure", parents=("a",)))
    assert history.snapshots["b"].estimates["a"].speedup == pytest.approx(2.0)
    history.ask(1)
    later = history.snapshots["c"].estimates["a"]
    assert (later.speedup, len(later.trials)) == (pytest.approx(8**0.5), 2)


def test_failed_attempts_are_kept_with_their_parent():
    history = RecordedHistory(FixedList([ask_of("d", parents=("a",))]))
    history.tell(judged("a", 2.0))
    history.tell(judged("b", None, parents=("a",)))
    refused = Turn(ask=ask_of("c", role="draft", parents=("a",)), refused="block 1 of 1 ...")
    history.tell(refused)
    history.ask(1)
    assert history.snapshots["d"].failed == ("incorrect: at 0", "block 1 of 1 ...")


def test_equal_code_of_a_trajectory_costs_nothing_and_is_no_trial():
    history = RecordedHistory(FixedList([]))
    history.tell(judged("a", 2.0, source="same"))
    second = history.settle(judged("b", 2.0, source="same"))
    assert (second.repeats, second.judgements[0].seconds) == ("a", 0.0)
    history.tell(second)
    assert len(history.estimates.of("b").trials) == 1
    other = history.settle(judged("c", 2.0, source="same", sample=1))
    measured = history.settle(judged("d", 2.0, source="same", role="measure", parents=("a",)))
    assert (other.repeats, measured.repeats) == ("", "")


def test_an_unjudged_trial_changes_no_estimate():
    history = RecordedHistory(FixedList([]))
    lost = judged("a", None).model_copy(
        update={"judgements": (EvalSummary(protocol="strict", verdict="unjudged"),)}
    )
    history.tell(lost)
    estimate = history.estimates.of("a")
    assert (estimate.verdict, estimate.speedup, estimate.unjudged) == (None, None, 1)
    assert history.settle(judged("b", 2.0, source="a")).repeats == ""


def test_the_worst_trial_is_the_verdict():
    history = RecordedHistory(FixedList([]))
    history.tell(judged("a", 2.0))
    history.tell(judged("b", None, source="a", role="measure", parents=("a",)))
    assert history.estimates.of("a").verdict == "incorrect"
    assert history.estimates.of("a").speedup is None


def test_trials_of_other_conditions_are_not_pooled():
    history = RecordedHistory(FixedList([]))
    history.tell(judged("a", 2.0, source="same"))
    turn = judged("b", 8.0, source="same", role="measure", parents=())
    other = turn.judgements[0].model_copy(update={"condition": "another device"})
    history.tell(turn.model_copy(update={"judgements": (other,)}))
    assert history.estimates.of("a").speedup == pytest.approx(2.0)
    assert history.estimates.of("b").speedup == pytest.approx(8.0)


def test_equal_code_in_flight_is_evaluated_once():
    once, calls, go = JudgedOnce(), list[str](), threading.Event()

    def evaluate() -> Turn:
        calls.append("call")
        go.wait(10)
        return judged("a", 2.0)

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(once.judge, ("p", 0, "same"), evaluate) for _ in range(4)]
        go.set()
        assert {item.result().ask.id for item in found} == {"a"}
    assert calls == ["call"]


def test_an_evaluation_that_was_lost_is_made_again():
    once = JudgedOnce()
    with pytest.raises(OSError, match="lost"):
        once.judge(("p", 0, "x"), lambda: (_ for _ in ()).throw(OSError("lost")))
    unjudged = judged("a", None).model_copy(
        update={"judgements": (EvalSummary(protocol="strict", verdict="unjudged"),)}
    )
    once.judge(("p", 0, "x"), lambda: unjudged)
    assert once.judge(("p", 0, "x"), lambda: judged("b", 2.0)).ask.id == "b"
