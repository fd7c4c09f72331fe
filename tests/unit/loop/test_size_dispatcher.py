"""Dispatchers: which sizes go to the reference, what is written, and what is kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import sample_reports as reports
from tilewright.cli.optimize import print_end
from tilewright.loop.size_dispatcher import (
    Dispatched,
    NoDispatcher,
    SizeRule,
    dispatcher,
    refusal,
    sides_of,
    size_rule,
)
from tilewright.problems.loader import find_problem, parse_problem
from tilewright.records import Candidate, Comparison, SourceFile
from tilewright.records.events import Ask, EvalSummary, Turn

SOURCE = """
import torch

ENTRY = "work"
CASES = [{"name": "one", "n": 1}]
FACTOR = 2


def inputs(case, generator):
    return (torch.ones(case["n"]),)


def reference(x, *, scale=1):
    return "reference", FACTOR * scale
"""
PROBLEM = parse_problem(SOURCE, "mine", "work", "a test")
CODE = "FACTOR = 7\n\n\ndef work(x, *, scale=1):\n    return 'candidate', FACTOR * scale\n"


def case_of(speedup: float, *shapes: tuple[int, ...], half: float = 0.05) -> Comparison:
    found = reports.comparison(f"{shapes}", speedup, half)
    return found.model_copy(update={"input_shapes": shapes})


def candidate(text: str = CODE, path: str = "fast.py", *more: SourceFile) -> Candidate:
    files = (SourceFile(path=path, text=text), *more)
    return Candidate(language="torch", files=files, entry="work")


def test_a_candidate_loses_where_the_whole_interval_is_below_one():
    given = [case_of(0.9, (4,)), case_of(0.97, (8,)), case_of(3.0, (16,))]
    given.append(case_of(0.2, (2,)).model_copy(update={"baseline": "compile"}))
    losing, others = sides_of(reports.report(comparisons=tuple(given)))
    assert (losing, others) == (given[:1], given[1:3])
    assert sides_of(reports.report(comparisons=tuple(given[1:]))) == ([], given[1:3])
    without = given[0].model_copy(update={"speedup_low": None, "speedup_high": None})
    assert sides_of(reports.report(comparisons=(without,))) == ([], [without])


def test_a_number_of_elements_separates_the_sizes_if_one_can():
    small, large = case_of(0.5, (10, 10)), case_of(2.0, (100, 100), (2,))
    assert size_rule([small], [large]) == SizeRule("below", 1000)
    assert size_rule([large], [small]) == SizeRule("above", 1000)
    # The nearest cases count, whatever lies beyond them.
    far = [case_of(0.1, (1,)), small]
    assert size_rule(far, [large, case_of(9.0, (10**6,))]) == SizeRule("below", 1000)


def test_without_such_a_number_exact_shapes_go_to_the_reference():
    losing = [case_of(0.5, (10, 10)), case_of(0.5, (10, 10))]
    others = [case_of(2.0, (2, 2)), case_of(2.0, (50, 50)), case_of(2.0, (25, 4))]
    assert size_rule(losing, others) == SizeRule("shapes", shapes=(((10, 10),),))
    with pytest.raises(NoDispatcher, match="equal shapes"):
        size_rule(losing, [*others, case_of(2.0, (10, 10))])


@given(st.sets(st.integers(0, 10**12), min_size=2), st.integers(1, 20), st.booleans())
def test_a_threshold_has_all_losing_cases_on_one_side(sizes, place, below):
    ordered = sorted(sizes)
    cut = 1 + place % (len(ordered) - 1)
    parts = [[case_of(1.0, (size,)) for size in part] for part in (ordered[:cut], ordered[cut:])]
    losing, others = parts if below else parts[::-1]
    rule = size_rule(losing, others)
    assert rule.kind == ("below" if below else "above")
    for part, goes in ((losing, True), (others, False)):
        for item in part:
            elements = math.prod(item.input_shapes[0])
            assert ((elements < rule.elements) == below) == goes


@pytest.mark.parametrize(
    ("losing", "others", "why"),
    [
        ([case_of(0.5, (4,))], [], "every size"),
        ([case_of(0.5)], [case_of(2.0, (4,))], "shapes of the arguments"),
    ],
)
def test_no_rule_follows_without_another_size_or_its_shape(losing, others, why):
    with pytest.raises(NoDispatcher, match=why):
        size_rule(losing, others)


class Sized:
    """A stand-in for a tensor: the wrapper asks for nothing else."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def numel(self) -> int:
        return math.prod(self.shape)


@pytest.mark.parametrize(
    ("rule", "goes", "stays"),
    [
        (SizeRule("below", 100), [Sized(99), [Sized(0)]], [Sized(50), [Sized(50)]]),
        (SizeRule("above", 100), [Sized(50), {"a": Sized(50)}], [Sized(99), {"a": 100}]),
        (
            SizeRule("shapes", shapes=(((2, 3), ()),)),
            [Sized(2, 3), Sized()],
            [Sized(3, 2), Sized()],
        ),
    ],
)
def test_the_program_calls_either_side_and_both_keep_their_own_names(rule, goes, stays):
    (main,) = dispatcher(candidate(), PROBLEM, rule).files
    assert main.path == "fast.py"
    assert main.text.startswith(CODE.strip())
    names: dict[str, Any] = {"__name__": "made"}
    exec(main.text, names)
    assert names["work"](goes, scale=5) == ("reference", 10)
    assert names["work"](goes) == ("reference", 2)
    assert names["work"](stays, scale=5) == ("candidate", 35)


@pytest.mark.parametrize(
    ("given", "problem", "why"),
    [
        (candidate(path="fast.cpp"), PROBLEM, "single Python file"),
        (candidate(CODE, "a.py", SourceFile(path="b.py", text="")), PROBLEM, "single Python file"),
        (candidate(), find_problem("mlp"), "module"),
        (
            candidate(),
            parse_problem(SOURCE.replace("import torch", "from torch import *"), "m", "m", "m"),
            "imports",
        ),
    ],
)
def test_other_candidates_get_the_reason_why_there_is_none(given, problem, why):
    with pytest.raises(NoDispatcher, match=why):
        dispatcher(given, problem, SizeRule("below", 9))


def summary(verdict: Any = "correct", speedup: float | None = None, half: float = 0.0):
    ends = {} if speedup is None else {"low": speedup * (1 - half), "high": speedup * (1 + half)}
    return EvalSummary(
        protocol="strict", verdict=verdict, speedup=speedup, reason="why not", **ends
    )


@pytest.mark.parametrize(
    ("made", "best", "why"),
    [
        (summary(speedup=2.0), summary(speedup=1.5), ""),
        (summary(speedup=1.5), summary(speedup=1.5), ""),
        (summary(speedup=1.4, half=0.1), summary(speedup=1.5, half=0.1), ""),
        (summary(speedup=1.4), summary(speedup=1.5), "slower"),
        (summary(speedup=1.0, half=0.1), summary(speedup=1.5, half=0.1), "slower"),
        (summary("rejected"), summary(speedup=1.5), "rejected: why not"),
        (summary("unjudged"), summary(speedup=1.5), "unjudged: why not"),
        (summary(), summary(speedup=1.5), "not measured"),
    ],
)
def test_a_dispatcher_is_kept_if_it_is_correct_and_not_slower_beyond_noise(made, best, why):
    found = refusal(made, best)
    assert why in found
    assert bool(found) == bool(why)


def test_the_end_says_what_became_of_each_dispatcher(capsys):
    turn, rule = Turn(ask=Ask(id="a", problem="p")), SizeRule("below", 1000)
    made = summary(speedup=2.0, half=0.01)
    found = {
        "p": Dispatched(turn, "", ("tiny",), rule, made),
        "q": Dispatched(turn, "slower", ("tiny",), rule, made),
        "r": Dispatched(turn, "it is C++", ("tiny", "odd")),
    }
    document = {"winners": {}, "ended_for": None, "stopped": None}
    dispatchers = {name: item.document() for name, item in found.items()}
    print_end({**document, "dispatchers": dispatchers}, Path("runs/r"))
    lines = capsys.readouterr().err
    assert "p: the candidate loses on tiny; a dispatcher" in lines
    assert "below 1000 elements was kept (2.00x" in lines
    assert "was not kept, slower (2.00x" in lines
    assert "r: the candidate loses on tiny, odd, and there is no dispatcher: it is C++" in lines
    assert [item["kept"] for item in dispatchers.values()] == [True, False, False]
