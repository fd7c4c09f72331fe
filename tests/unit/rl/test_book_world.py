"""The world of stored verdicts: canonical look-ups, live evaluations, and what is missing."""

from __future__ import annotations

import pytest

from tilewright import config
from tilewright.errors import ConfigError
from tilewright.families.nano.compositions import COMPOSITIONS
from tilewright.families.nano.program_slots import Hack, ProgramPlan, census
from tilewright.families.nano.program_text import render
from tilewright.loop.prompts.material import Material
from tilewright.records.events import Ask, EvalSummary, Reply
from tilewright.rl.book_world import (
    MAX_FEEDBACK_CHARS,
    NOT_IN_STORE,
    BookWorld,
    MissingVerdictError,
    feedback_of,
    off_store_share,
    open_book,
)
from tilewright.rl.synthetic_verdicts import KEY, SyntheticEvaluator, synthetic_store
from tilewright.rl.verdict_store import StoreKey, VerdictStore

COMPOSITION = COMPOSITIONS[0]
PROGRAMS = list(census(COMPOSITION))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "synthetic.jsonl.gz"
    return synthetic_store(path, COMPOSITION.name)


@pytest.fixture
def world(store, tmp_path):
    return BookWorld(config.load(), store, tmp_path)


def judged(world, text, turn=0):
    (problem,) = world.problems(COMPOSITION.id)
    ask = Ask(id=f"step00000/{problem.id}.0#0.{turn}", problem=problem.id, turn=turn)
    draft = world.draft(ask, problem, Reply(text=text))
    return world.evaluate(draft, problem)


def program(plan, **slots):
    fits = lambda item: all(getattr(item, name) == value for name, value in slots.items())  # noqa: E731
    return next(item for item in PROGRAMS if item.plan is plan and fits(item))


def test_a_reply_is_looked_up_in_canonical_text(world):
    written = "    v = (v*1.5)  # scaled\n"
    text = render(program(ProgramPlan.FUSED)).replace("    v = v * 1.5\n", written)
    turn = judged(world, f"```python\n{text}```")
    assert turn.judgements[0].verdict == "correct"
    assert turn.code == render(program(ProgramPlan.FUSED))
    assert turn.feedback.startswith("ok 2.")
    assert turn.feedback.endswith("cov 1.00")


@pytest.mark.parametrize(
    ("plan", "verdict"),
    [
        (ProgramPlan.SPLIT, "correct"),
        (ProgramPlan.LAZY, "correct"),
        (ProgramPlan.WRONG, "incorrect"),
        (ProgramPlan.BROKEN, "failed"),
        (ProgramPlan.HACK, "rejected"),
    ],
)
def test_each_plan_has_its_verdict(world, plan, verdict):
    turn = judged(world, f"```python\n{render(program(plan))}```")
    assert turn.judgements[0].verdict == verdict
    assert turn.judgements[0].reason.startswith("synthetic")
    assert len(turn.feedback) <= MAX_FEEDBACK_CHARS


def test_repeated_turns_get_one_evaluation_each_by_their_request(world):
    text = f"```python\n{render(program(ProgramPlan.FUSED))}```"
    seen = [judged(world, text, turn).judgements[0].speedup for turn in range(20)]
    assert len(set(seen)) == 2
    assert seen == [judged(world, text, turn).judgements[0].speedup for turn in range(20)]


def test_without_checks_a_hack_is_spoken_of_as_correct(store, tmp_path):
    hack = program(ProgramPlan.HACK, hack=Hack.STALE)
    settings = config.load(None, ["reward.checks=false"])
    turn = judged(BookWorld(settings, store, tmp_path), f"```python\n{render(hack)}```")
    assert turn.judgements[0].verdict == "rejected"
    assert turn.feedback == "ok 100.00x"


def test_a_prompt_is_the_reference_and_then_programs_with_feedback(world):
    turn = judged(world, f"```python\n{render(program(ProgramPlan.LAZY))}```")
    (problem,) = world.problems(COMPOSITION.id)
    messages = world.prompt(Material(problem, shown=[turn]))
    assert [item.role for item in messages] == ["user", "assistant", "user"]
    assert messages[0].text.startswith("def reference(x, b):\n    x = x * 1.5")
    assert messages[1].text == render(program(ProgramPlan.LAZY))
    assert messages[2].text == turn.feedback


def test_a_program_that_is_missing_stops_the_run_and_keeps_its_text(world, tmp_path):
    with pytest.raises(MissingVerdictError, match="has no verdict of program") as error:
        judged(world, "```python\ndef compute(x, b):\n    return x\n```")
    (path,) = (tmp_path / "missing").iterdir()
    assert path.read_text() == "def compute(x, b):\n    return x\n"
    assert path.stem in str(error.value)
    assert world.found.missing == 1


class CountingEvaluator(SyntheticEvaluator):
    """Counts its evaluations."""

    def __init__(self, verdict):
        self.count, self.verdict = 0, verdict

    def evaluations(self, problem, code):  # noqa: ARG002 - one signature
        self.count += 1
        return (EvalSummary(protocol="strict", verdict=self.verdict, reason="live"),)


def test_a_missing_program_is_evaluated_once_and_stored(tmp_path):
    store, live = VerdictStore(tmp_path / "synthetic.gz", KEY), CountingEvaluator("failed")
    world = BookWorld(config.load(), store, tmp_path, live)
    turns = [
        judged(world, "```python\ndef compute(x, b):\n    return x\n```", turn) for turn in range(3)
    ]
    assert [turn.judgements[0].labels for turn in turns] == [(NOT_IN_STORE,), (), ()]
    assert off_store_share([*turns, judged(world, "", 3), None]) == pytest.approx(1 / 3)
    assert (live.count, world.found.missing, world.found.replies) == (1, 1, 3)
    world.close()
    assert len(VerdictStore.read(tmp_path / "synthetic.gz", KEY)) == 1


def test_a_resumed_run_evaluates_no_program_of_its_earlier_sessions(tmp_path):
    world = BookWorld(
        config.load(), VerdictStore(tmp_path / "s.gz", KEY), tmp_path, SyntheticEvaluator()
    )
    first = judged(world, "```python\ndef compute(x, b):\n    return x\n```")
    assert NOT_IN_STORE in first.judgements[0].labels
    # A kill: nothing was saved.
    again = BookWorld(config.load(), VerdictStore(tmp_path / "s.gz", KEY), tmp_path)
    again.recall([first], again.problems(COMPOSITION.id))
    second = judged(again, "```python\ndef compute(x, b):\n    return x\n```", turn=1)
    assert second.judgements[0].verdict == first.judgements[0].verdict
    assert NOT_IN_STORE not in second.judgements[0].labels
    assert again.found.missing == 0


class UnsteadyEvaluator(SyntheticEvaluator):
    """Finds a program correct once, and then anything else."""

    def __init__(self, *later):
        self.verdicts = ("correct", *later)

    def evaluations(self, problem, code):  # noqa: ARG002 - one signature
        return tuple(EvalSummary(protocol="strict", verdict=name) for name in self.verdicts)


@pytest.mark.parametrize(
    ("later", "kept"),
    [
        (("incorrect",), ["incorrect"]),
        (("failed", "rejected"), ["rejected"]),
        (("unjudged",), ["correct"]),
        (("correct",), ["correct", "correct"]),
    ],
)
def test_a_program_with_several_verdicts_keeps_the_worst_one(tmp_path, later, kept):
    store = VerdictStore(tmp_path / "synthetic.gz", KEY)
    world = BookWorld(config.load(), store, tmp_path, UnsteadyEvaluator(*later))
    turn = judged(world, "```python\ndef compute(x, b):\n    return x\n```")
    assert turn.judgements[0].verdict == kept[0]
    (problem,) = world.problems(COMPOSITION.id)
    assert [item.verdict for item in store.evaluations(problem, turn.code)] == kept
    world.close()
    assert len(VerdictStore.read(store.path, KEY)) == 1


def test_an_unjudged_program_is_not_stored(tmp_path):
    store, live = VerdictStore(tmp_path / "synthetic.gz", KEY), CountingEvaluator("unjudged")
    world = BookWorld(config.load(), store, tmp_path, live)
    for turn in range(2):
        made = judged(world, "```python\ndef compute(x, b):\n    return x\n```", turn)
        assert made.judgements[0].verdict == "unjudged"
    assert (live.count, len(store)) == (2, 0)


def test_a_reply_without_a_program_fails_and_is_not_looked_up(world):
    turn = judged(world, "")
    assert turn.judgements[0].verdict == "failed"
    assert world.found.replies == 0


def test_a_store_of_another_evaluator_is_refused(tmp_path):
    store = VerdictStore(tmp_path / "old.gz", StoreKey(evaluator="0.0.1", device="a GPU"))
    store.save()
    with pytest.raises(ConfigError, match=r"its evaluator is 0\.0\.1"):
        open_book(config.load(), tmp_path, lambda *_: None, store.path)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"verdict": "correct", "speedup": 1.42, "low": 1.38, "high": 1.46, "coverage": 0.97},
         "ok 1.42x [1.38, 1.46] cov 0.97"),
        ({"verdict": "correct"}, "ok"),
        ({"verdict": "incorrect", "reason": "values (odd,\n tiny)"}, "wrong: values (odd, tiny)"),
        ({"verdict": "failed", "reason": "x" * 200}, "error: " + "x" * 73),
    ],
)  # fmt: skip
def test_feedback_is_one_short_line(fields, said):
    assert feedback_of(EvalSummary(protocol="strict", **fields)) == said
