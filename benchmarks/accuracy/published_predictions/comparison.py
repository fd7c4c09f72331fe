"""Accuracies by model, verdicts that differ, and the bars over both."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.accuracy.published_predictions.rules import Evidence, find_rule
from benchmarks.bars import Bar
from tilewright.languages.syntax import parse_tree
from tilewright.records.events import EvalSummary
from tilewright.scoring.protocol_differences import cause_of

MAX_POINTS = 2.0
"""Largest difference of an accuracy, in points of a hundred."""
UNEXPLAINED = "not explained"
COLUMNS = ("call: scripts", "official", "execution: scripts", "official", "strict")
STOPS_EARLY = "neither is correct: strict ends at the first wrong output, official goes on"


@dataclass(frozen=True)
class Compared:
    """One prediction with every verdict on it."""

    model: str
    file: str
    evidence: Evidence
    strict: EvalSummary | None

    @property
    def has_verdict(self) -> bool:
        """Whether tilewright judges it under `official`."""
        official = self.evidence.official
        return official is not None and official.verdict != "unjudged"

    @property
    def difference(self) -> str | None:
        """The rule that explains why script and `official` differ; `None`: they agree."""
        if self.evidence.agrees:
            return None
        rule = find_rule(self.evidence)
        return rule.name if rule else UNEXPLAINED

    @property
    def strict_difference(self) -> str | None:
        """Why the verdicts of both protocols differ; `None`: they do not, or one is missing."""
        official, strict = self.evidence.official, self.strict
        if official is None or strict is None or official.verdict == strict.verdict:
            return None
        if "unjudged" in (official.verdict, strict.verdict):
            return f"unjudged under one protocol alone: {official.code or strict.code}"
        if "correct" not in (official.verdict, strict.verdict):
            return STOPS_EARLY
        problem = self.evidence.problem.id if self.evidence.problem else ""
        return cause_of(problem, official, strict) or UNEXPLAINED


@dataclass(frozen=True)
class Accuracies:
    """Percentages of a model's predictions."""

    model: str
    predictions: int
    script_call: float
    official_call: float
    script_execute: float
    official_execute: float
    strict_correct: float

    @property
    def worst_points(self) -> tuple[float, float]:
        """How far `official` is from the scripts: call, execution."""
        return (
            abs(self.script_call - self.official_call),
            abs(self.script_execute - self.official_execute),
        )


def tests_of(text: str) -> ast.Module:
    """Return the test part of a gold file as a tree; an empty one if it is not Python."""
    try:
        return parse_tree(text)
    except SyntaxError:
        return ast.Module([], [])


def accuracies(rows: Sequence[Compared]) -> list[Accuracies]:
    """Return the accuracies of each model, over all its compared predictions.

    A prediction without a verdict of tilewright counts as passed in neither stage.
    """
    found = []
    for model in dict.fromkeys(row.model for row in rows):
        own = [row for row in rows if row.model == model]
        shares = (
            [row.evidence.script.called for row in own],
            [row.evidence.accuracies[0] for row in own],
            [row.evidence.script.executed for row in own],
            [row.evidence.accuracies[1] for row in own],
            [row.strict is not None and row.strict.verdict == "correct" for row in own],
        )
        found.append(Accuracies(model, len(own), *(100 * sum(s) / len(own) for s in shares)))
    return found


def bars(rows: Sequence[Compared]) -> list[Bar]:
    """Return the bars: each model's accuracies are near, and each difference has a rule."""
    found = [
        Bar(
            f"{item.model}: call, execution",
            f"at most {MAX_POINTS:g} points",
            " and ".join(f"{points:.1f} points" for points in item.worst_points),
            max(item.worst_points) <= MAX_POINTS,
        )
        for item in accuracies(rows)
    ]
    unexplained = sum(row.difference == UNEXPLAINED for row in rows)
    found.append(Bar("differences without a rule", "0", str(unexplained), not unexplained))
    return found


def tables(rows: Sequence[Compared]) -> str:
    """Return Markdown: accuracies of all and of judged ones, and differences by rule and singly."""
    lines = _head("model", "predictions", *COLUMNS)
    lines += [_accuracy_row(item) for item in accuracies(rows)]
    lines += ["", *_head("model", "with a verdict", *COLUMNS)]
    lines += [_accuracy_row(item) for item in accuracies([row for row in rows if row.has_verdict])]
    lines += ["", *_counted("scripts and `official` differ", [row.difference for row in rows])]
    lines += ["", *_counted("`official`, `strict` differ", [row.strict_difference for row in rows])]
    lines += [
        "",
        "| prediction | scripts | official | rule | reason |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [_difference_row(row) for row in rows if row.difference]
    return "\n".join(lines)


def _accuracy_row(item: Accuracies) -> str:
    numbers = (
        item.script_call,
        item.official_call,
        item.script_execute,
        item.official_execute,
        item.strict_correct,
    )
    cells = " | ".join(f"{number:.2f} %" for number in numbers)
    return f"| {item.model} | {item.predictions} | {cells} |"


def _counted(title: str, reasons: Sequence[str | None]) -> list[str]:
    counts = Counter(reason for reason in reasons if reason)
    rows = [f"| {reason} | {count} |" for reason, count in counts.most_common()]
    return [*_head(title, "predictions"), *rows]


def _head(*titles: str) -> list[str]:
    return [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]


def _difference_row(row: Compared) -> str:
    script, official = row.evidence.script, row.evidence.official
    passed = "execution" if script.executed else "call" if script.called else "none"
    said = (row.evidence.reason or row.evidence.last_error).replace("|", "/").replace("\n", " ")
    cells = (
        f"{row.model} {row.file}",
        passed,
        official.verdict if official else "no problem",
        row.difference or "",
        said[:160],
    )
    return f"| {' | '.join(cells)} |"
