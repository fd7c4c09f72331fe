"""The reproducer: one script with problem, candidate and seeds that needs nothing but torch.

This module assembles the script as text. The script contains the judge's own files for input
variations, weights and comparison. torch is not imported here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.evaluator.judge_client.official_tolerances import comparison_rule
from tilewright.evaluator.pipeline.correctness import hidden_cases
from tilewright.evaluator.runners.pool import SLOTS
from tilewright.evaluator.seeds import derive, generator
from tilewright.languages.base import BuildPlan
from tilewright.languages.python_template import render_python
from tilewright.languages.syntax import parse_tree
from tilewright.records import (
    Case,
    CaseResult,
    Correct,
    EvalReport,
    Failed,
    Incorrect,
    Unjudged,
)
from tilewright.registry import load
from tilewright.wire.names import INPUT_VARIATIONS

Scalar = bool | int | float | str

PACKAGE = Path(__file__).parent.parent
TEMPLATE = Path(__file__).with_suffix(".py.j2")
HEADER = PACKAGE / "runner" / "loaders" / "tilewright.h"
MAX_REPEATS = 64
"""Most repetitions of one input variation; the judge makes fewer."""


@dataclass(frozen=True)
class Call:
    """One call of the candidate by the judge, and the seeds of its inputs."""

    case: str
    params: dict[str, Scalar]
    variation: str
    seed: int
    forward_seed: int
    slot: int
    sample: None = None
    """Timed calls share input samples; the other calls do not."""
    perturb: None = None


@dataclass(frozen=True)
class Plan:
    """The calls of the script: recorded ones, then timed calls of (case, params, blocks)."""

    calls: list[Call]
    failing: int | None
    """The index of the incorrect call, if known."""
    timed: list[tuple[str, dict[str, Scalar], int]]
    compared_from: int


def reproducer(report: EvalReport) -> tuple[str, str]:
    """Return the script and an empty text, or an empty script and the reason."""
    if isinstance(report.outcome, Correct):
        return "", "the candidate is correct"
    if report.request.device != "cpu":
        return (
            "",
            "a GPU made the inputs: `tilewright eval --from-report` repeats the evaluation there",
        )
    plan = plan_of(report)
    if plan.failing is None and not plan.timed and not isinstance(report.outcome, Failed):
        return "", _why_none(report)
    build: BuildPlan = load("languages", report.request.candidate.language).plan(
        report.request.candidate
    )
    language = report.request.candidate.language
    script = render_python(
        TEMPLATE,
        needs={"triton": ", triton", "cpp": " and g++"}.get(language, ""),
        interpreted=language == "triton",
        constants=_constants(report, build, plan),
        header=HEADER.read_text(encoding="ascii") if build.loader == "c_abi" else "",
        calls=[vars(call) for call in plan.calls],
        problem=report.request.problem.source.text,
        files={file.path: file.text for file in report.request.candidate.files},
        judge_files={path: inlined(path) for path in _judge_files(report, build)},
    )
    return script, ""


def _why_none(report: EvalReport) -> str:
    if isinstance(report.outcome, Unjudged):
        return "nothing was judged"
    return "every compared output was correct; the findings above decided the verdict"


def failing_case(report: EvalReport) -> CaseResult | None:
    """Return the first input sample with a wrong output or overwritten inputs."""
    for item in report.cases:
        if item.result == "fail" or item.detail.startswith("overwrote"):
            return item
    return None


def plan_of(report: EvalReport) -> Plan:
    """Return the calls up to the failing one.

    A candidate that failed without an answer has no recorded input sample for its last call. The
    plan then also holds the calls that the judge had planned next.
    """
    failed, slots = failing_case(report), Slots(report.seed)
    calls = []
    cases = {case.name: case for case in (*report.request.problem.cases, *_hidden(report))}
    for item in report.cases:
        if item.result == "skipped" or item.case not in cases or not item.seed:
            continue
        calls.append(_call(report, slots, cases[item.case], item.input_variation, int(item.seed)))
        if item is failed:
            return Plan(calls, len(calls) - 1, [], len(calls) - 1)
    timed = _timed(report)
    if timed:
        return Plan(calls, None, timed, len(calls))
    if isinstance(report.outcome, Failed) and report.outcome.stage == "correctness":
        calls += _planned(report, slots, list(cases.values()))
    return Plan(calls, None, [], 0)


def _timed(report: EvalReport) -> list[tuple[str, dict[str, Scalar], int]]:
    """Return the timed cases up to the one in which the candidate failed or was wrong."""
    outcome = report.outcome
    wrong = isinstance(outcome, Incorrect) and outcome.case.endswith(", timed")
    failed = isinstance(outcome, Failed) and outcome.stage == "timing"
    if not (wrong or failed) or report.request.protocol == "official":
        return []
    blocks = {item.case: item.blocks for item in report.comparisons}
    found = []
    for case in report.request.problem.cases:
        most = report.request.timing.max_blocks
        found.append((case.name, dict(case.params), blocks.get(case.name, most)))
        if case.name not in blocks:
            break
    return found


class Slots:
    """Addresses of inputs: the first one of a case twice in a row, then any of the ring."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._last: dict[str, int] = {}

    def take(self, case: str, variation: str, repeat: int) -> int:
        """Return the slot of the next call."""
        slot = self._last.pop(case, None)
        if slot is None:
            slot = generator(self._root, "slot", case, variation, repeat).randrange(SLOTS)
            if variation == "nominal" and repeat == 0:
                self._last[case] = slot
        return slot


def _call(report: EvalReport, slots: Slots, case: Case, variation: str, seed: int) -> Call:
    """Return a call. Its seed determines its repetition."""
    root = report.seed
    repeat = next(
        (
            number
            for number in range(MAX_REPEATS)
            if derive(root, "inputs", case.name, variation, number) == seed
        ),
        0,
    )
    return Call(
        case=case.name,
        params=dict(case.params),
        variation=variation,
        seed=seed,
        forward_seed=derive(root, "forward", repeat) & 0x7FFFFFFF,
        slot=slots.take(case.name, variation, repeat),
    )


def _planned(report: EvalReport, slots: Slots, cases: list[Case]) -> Iterator[Call]:
    """Yield the calls that the judge would have made after the recorded ones."""
    known = {(item.case, item.input_variation) for item in report.cases}
    root, allowed = report.seed, report.request.problem.input_variations
    plan = [(case, "nominal") for case in cases]
    for case in report.request.problem.cases:
        names = [name for name in INPUT_VARIATIONS[1:] if allowed is None or name in allowed]
        generator(root, "variations", case.name).shuffle(names)
        plan += [(case, name) for name in names]
    for case, variation in plan:
        if (case.name, variation) not in known:
            seed = derive(root, "inputs", case.name, variation, 0)
            yield _call(report, slots, case, variation, seed)


def _hidden(report: EvalReport) -> list[Case]:
    """Return the secret sizes, sampled again with the seed in the report."""
    if report.request.protocol == "official":
        return []
    return hidden_cases(report.request.problem, generator(report.seed, "sizes"))


def _constants(report: EvalReport, build: BuildPlan, plan: Plan) -> dict[str, Any]:
    request = report.request
    problem, strict = request.problem, request.protocol == "strict"
    timed = report.environment.host.get("timed_cores")
    said = getattr(report.outcome, "message", "").strip().partition("\n")[0]
    return {
        "PROBLEM_ID": problem.id,
        "JUDGE_SAID": f"{report.verdict}: {said}".removesuffix(": "),
        "KIND": problem.kind,
        "MODE": problem.mode,
        "GRADS": list(problem.grads),
        "DONATED": list(problem.writable_inputs),
        "KEYWORDS": list(problem.keyword_args),
        "RULE": comparison_rule(problem, request.protocol),
        "LANGUAGE": request.candidate.language,
        "ENTRY": request.candidate.entry,
        "LOADER": build.loader,
        "COMMAND": list(build.compiler()),
        "UNITS": list(build.units),
        "IMPORT_PATHS": list(request.candidate.allow_imports),
        "THREADS": len(timed) if isinstance(timed, list) and timed else 1,
        "INIT_SEED": derive(report.seed, "init") & 0x7FFFFFFF,
        "WEIGHTS_SEED": derive(report.seed, "weights") if strict else None,
        "ROOT_SEED": report.seed,
        "FAILING": plan.failing,
        "COMPARED_FROM": plan.compared_from,
        "TIMED": plan.timed,
    }


def _judge_files(report: EvalReport, build: BuildPlan) -> Iterator[str]:
    yield "wire/names.py"
    yield "evaluator/seeds.py"
    yield "evaluator/judge/variations.py"
    yield "evaluator/judge/comparison.py"
    yield "evaluator/judge/official_comparison.py"
    yield "evaluator/judge/weights.py"
    if build.loader == "c_abi" or report.request.candidate.language == "triton":
        yield "runner/launch_counter.py"
    if build.loader == "c_abi":
        yield "runner/loaders/c_abi.py"


def inlined(path: str) -> str:
    """Return a file of ours without its module docstring and its imports of our modules."""
    text = (PACKAGE / path).read_text(encoding="ascii")
    tree = parse_tree(text)
    dropped: set[int] = set()
    for number, node in enumerate(tree.body):
        if (number == 0 and isinstance(node, ast.Expr)) or _is_ours(node):
            dropped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = text.splitlines(keepends=True)
    return "".join(_kept(lines, dropped)).strip() + "\n"


def _kept(lines: Iterable[str], dropped: set[int]) -> Iterator[str]:
    return (line for number, line in enumerate(lines, start=1) if number not in dropped)


def _is_ours(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or (node.module or "").startswith("tilewright")
    return isinstance(node, ast.Import) and [alias.name for alias in node.names] == ["torch"]
