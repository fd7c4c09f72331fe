"""Prediction files in the formats of TritonBench and KernelBench-X.

A row has an `instruction`, the answer in `predict` and, in TritonBench-G, the gold implementation
in `label`. It names no problem: the benchmarks' scripts find the problem by these texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tilewright.problems.sets.gold_file import SEPARATOR
from tilewright.records import Problem, SourceFile

INSTRUCTION_FIELDS = ("instruction", "prompt", "query")
DESCRIBED, WRAPPED = "Functional Description: ", "Wrapper Entry Information:"
FENCE = "```"
ENDS = re.compile(r"<\|im_end\|>|<\|EOT\|>")
_WRAPPER = re.compile(rf"{WRAPPED}\s*(?:def\s+)?(?:\w+\.)*(\w+)\s*\(")


def named_predictions(
    rows: Iterable[tuple[str, dict[str, Any]]], problems: Sequence[Problem]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows; a prediction gets the `name` of its problem, and code without a fence.

    A name that the row has already is kept.
    """
    for where, row in rows:
        if isinstance(row.get("predict"), str):
            name = _problem_of(row, problems)
            row = {**({} if name is None else {"name": name}), **row}
            row["predict"] = _unfenced(row["predict"], problems)
        yield where, row


def without_tests(files: tuple[SourceFile, ...], problem: str) -> tuple[SourceFile, ...]:
    """Return the files of an answer without the tests of a gold file, which may stand below it.

    KernelBench-X takes the text above its separator; TritonBench has no such rule.
    """
    if not problem.startswith("kernelbenchx/"):
        return files
    return tuple(
        SourceFile(path=file.path, text=file.text.partition(SEPARATOR)[0])
        if SEPARATOR in file.text
        else file
        for file in files
    )


def _problem_of(row: dict[str, Any], problems: Sequence[Problem]) -> str | None:
    """Return the id of a prediction's problem, or a text that names an unknown one, or `None`."""
    label, instruction = _bare(_text(row, ("label",))), _text(row, INSTRUCTION_FIELDS)
    if label and any(problem.id.startswith("tritonbench/") for problem in problems):
        return _only([p for p in problems if label in p.source.text]) or f"{label[:60]}..."
    if DESCRIBED not in instruction or WRAPPED not in instruction:
        return None
    words = _joined(instruction.rpartition(DESCRIBED)[2].partition(WRAPPED)[0])
    wrapper = _WRAPPER.search(instruction)
    name = wrapper[1] if wrapper else ""
    described = [p for p in problems if words and words in _joined(p.description)]
    # One description may be the beginning of another one.
    exact = [problem for problem in described if _joined(problem.description) == words]
    bare = [p for p in problems if not p.description and name in (p.entry, p.id.rpartition("/")[2])]
    return _only(exact or described or bare) or name or words[:60]


def _unfenced(text: str, problems: Sequence[Problem]) -> str:
    opening = f"{FENCE}python"
    if opening not in text:
        return text
    # Like the benchmarks' scripts. That of TritonBench keeps the closing fence, a syntax error.
    first = any(problem.id.startswith("kernelbenchx/") for problem in problems)
    text = text.partition(opening)[2] if first else text.rpartition(opening)[2]
    return _bare(text.partition(FENCE)[0]) + "\n"


def _text(row: dict[str, Any], names: Sequence[str]) -> str:
    return next((row[name] for name in names if isinstance(row.get(name), str)), "")


def _bare(text: str) -> str:
    return ENDS.sub("", text).strip()


def _joined(text: str) -> str:
    return text.replace("\n", "").strip()


def _only(problems: list[Problem]) -> str | None:
    return problems[0].id if len(problems) == 1 else None
