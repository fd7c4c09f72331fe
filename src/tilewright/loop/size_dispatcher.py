"""A dispatcher: a program that calls the reference on the sizes on which a candidate loses.

KernelEvolve deploys its kernels this way, since they may lose on sizes that it did not tune for
(arXiv 2512.23236, section on deployment). The rule and the test of the whole program are ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tilewright.config import Config
from tilewright.languages.nested_source import CannotNest, nested
from tilewright.languages.python_template import render_python
from tilewright.loop.answer_evaluator import OnEvent, open_evaluator
from tilewright.loop.estimates import NORMAL_95, trial_of
from tilewright.loop.rollout_environment import within_turn
from tilewright.loop.run_state import SearchRun
from tilewright.problems.requests import build_request
from tilewright.records import Candidate, Comparison, EvalReport, Problem, SourceFile
from tilewright.records.events import Ask, EvalSummary, Turn
from tilewright.records.run_folder import read_report

TEMPLATE = Path(__file__).with_name("size_dispatcher.py.j2")
OPERATOR = "dispatcher"
REFERENCE = "eager"
"""The baseline that is the reference as PyTorch runs it, which a dispatcher calls."""
Shapes = tuple[tuple[int, ...], ...]
"""Shapes of the tensors among the arguments of a call."""


class NoDispatcher(Exception):
    """No dispatcher can be written for a candidate; the message says why."""


@dataclass(frozen=True)
class SizeRule:
    """The calls that go to the reference."""

    kind: Literal["below", "above", "shapes"]
    elements: int = 0
    """Number of elements of all tensor arguments together, from which or below which they do."""
    shapes: tuple[Shapes, ...] = ()

    @property
    def text(self) -> str:
        """Return the rule in words, as the end of a sentence."""
        if self.kind == "shapes":
            return f"for {len(self.shapes)} combinations of shapes"
        sides = {"below": "below", "above": "from"}
        return f"for arguments {sides[self.kind]} {self.elements} elements"


@dataclass(frozen=True)
class Dispatched:
    """The dispatcher for the best candidate of a problem, or why there is none."""

    best: Turn
    """The dispatcher if it was kept, else the best candidate itself."""
    reason: str = ""
    """Why there is no dispatcher, or why it was not kept; empty if it was."""
    cases: tuple[str, ...] = ()
    """The cases on which the candidate loses."""
    rule: SizeRule | None = None
    judgement: EvalSummary | None = None

    def document(self) -> dict[str, object]:
        """Return the fields of the JSON document."""
        made = self.judgement
        return {
            "kept": not self.reason,
            "reason": self.reason or None,
            "losing_cases": list(self.cases),
            "rule": self.rule.text if self.rule is not None else None,
            "verdict": made.verdict if made is not None else None,
            "speedup": made.speedup if made is not None else None,
            "speedup_low": made.low if made is not None else None,
            "speedup_high": made.high if made is not None else None,
        }


def add_dispatchers(
    session: SearchRun, settings: Config, best: Mapping[str, Turn], shown: OnEvent
) -> dict[str, Dispatched]:
    """Write and judge a dispatcher for each best candidate that loses on some sizes.

    The result has no entry for a candidate that loses on none. The evaluations belong to no budget,
    as those of the final measurements; a resumed run does not repeat them.
    """
    if not settings.loop.dispatcher:
        return {}
    found = {}
    for name, turn in best.items():
        problem = next(item for item in session.problems if item.id == name)
        made = _dispatched(session, settings, problem, turn, shown)
        if made is not None:
            found[name] = made
    return found


def _dispatched(
    session: SearchRun, settings: Config, problem: Problem, best: Turn, shown: OnEvent
) -> Dispatched | None:
    report = read_report(session.folder / best.judgements[0].report)
    losing, others = sides_of(report)
    if not losing:
        return None
    cases = tuple(item.case for item in losing)
    try:
        rule = size_rule(losing, others)
        candidate = dispatcher(report.request.candidate, problem, rule)
    except NoDispatcher as error:
        return Dispatched(best, str(error), cases)
    ask = Ask(
        id=f"{best.ask.id}.{OPERATOR}",
        problem=problem.id,
        sample=best.ask.sample,
        parents=(best.ask.id,),
        operator=OPERATOR,
    )
    limited = within_turn(settings)
    executor, judge = open_evaluator(limited, session.folder, shown, workers=1)
    with closing(executor):
        summary, _ = judge.evaluate(ask, build_request(candidate, problem, limited))
    turn = Turn(ask=ask, judgements=(summary,), language=candidate.language)
    reason = refusal(summary, best.judgements[0])
    return Dispatched(best if reason else turn, reason, cases, rule, summary)


def sides_of(report: EvalReport) -> tuple[list[Comparison], list[Comparison]]:
    """Return the comparisons with the reference on which a candidate loses, and the other ones.

    It loses on a case if the whole interval of its speed-up is below 1.
    """
    compared = [item for item in report.comparisons if item.baseline == REFERENCE]
    losing = [item for item in compared if (item.speedup_high or 1.0) < 1.0]
    return losing, [item for item in compared if item not in losing]


def size_rule(losing: Sequence[Comparison], others: Sequence[Comparison]) -> SizeRule:
    """Return the rule that generalises the losing cases to other sizes.

    A number of elements separates them if all are smaller, or all are larger, than the other cases.
    It is the geometric mean of the nearest two. Else only their exact shapes go to the reference.

    Raises:
        NoDispatcher: it loses everywhere, or the shapes of the cases are unknown or equal.
    """
    if not others:
        raise NoDispatcher("the candidate is slower than the reference on every size")
    if not all(item.input_shapes for item in (*losing, *others)):
        raise NoDispatcher("the report does not name the shapes of the arguments")
    low, high = (sorted(map(_elements, side)) for side in (losing, others))
    if low[-1] < high[0]:
        return SizeRule("below", _between(low[-1], high[0]))
    if high[-1] < low[0]:
        return SizeRule("above", _between(high[-1], low[0]))
    shapes = tuple(dict.fromkeys(item.input_shapes for item in losing))
    if any(item.input_shapes in shapes for item in others):
        raise NoDispatcher("cases with equal shapes are faster and slower than the reference")
    return SizeRule("shapes", shapes=shapes)


def _elements(item: Comparison) -> int:
    return sum(map(math.prod, item.input_shapes))


def _between(small: int, large: int) -> int:
    """Return a number above `small` and at most `large`: their geometric mean, rounded down."""
    return max(small + 1, math.isqrt(small * large))


def dispatcher(candidate: Candidate, problem: Problem, rule: SizeRule) -> Candidate:
    """Return the program that calls the reference where a rule says so.

    Raises:
        NoDispatcher: the candidate is no single Python file, or the reference cannot be copied.
    """
    if problem.kind != "function":
        raise NoDispatcher("the problem is a module, which has one size")
    main, *further = candidate.files
    if further or not main.path.endswith(".py"):
        raise NoDispatcher("the candidate is no single Python file")
    try:
        reference = nested(problem.source.text, "reference", "_nested_reference")
    except CannotNest as error:
        raise NoDispatcher(f"the reference cannot be copied: {error}") from error
    text = render_python(
        TEMPLATE,
        candidate=main.text.rstrip(),
        reference=reference,
        entry=candidate.entry,
        rule=rule,
    )
    return candidate.model_copy(update={"files": (SourceFile(path=main.path, text=text),)})


def refusal(made: EvalSummary, best: EvalSummary) -> str:
    """Return why a dispatcher is not kept: it is not correct, or slower beyond noise.

    It is slower if the 95 % interval of the ratio of both speed-ups is below 1. At a tie it is
    kept, since it loses on fewer sizes.
    """
    if made.verdict != "correct":
        return f"{made.verdict}: {made.reason}".rstrip(": ")
    own, alone = trial_of(made), trial_of(best)
    if own is None or alone is None or own.log_speedup is None or alone.log_speedup is None:
        return "its speed was not measured"
    half = NORMAL_95 * math.hypot(own.error or 0.0, alone.error or 0.0)
    return "slower than the candidate alone" if own.log_speedup + half < alone.log_speedup else ""
