"""The reproducer: one script with problem, candidate and seeds that needs nothing but torch.

This module assembles the script as text. The script contains the judge's own files for input
variations, weights and comparison. torch is not imported here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.evaluator.judge_client.client import comparison_rule
from tilewright.evaluator.pipeline.correctness import UNTIMED_VARIATIONS, hidden_cases
from tilewright.evaluator.pipeline.timed_variations import (
    has_refused_peaks,
    unchecked_variations,
)
from tilewright.evaluator.runners.pool import SLOTS
from tilewright.evaluator.seeds import derive, generator
from tilewright.evaluator.timing.blocks import RENEWALS, VARIED_SHARE
from tilewright.evaluator.timing.call_plan import (
    HALF_TYPES,
    VARIATIONS_KEY,
    chosen_variations,
    uneven,
)
from tilewright.evaluator.timing.cpu_clock import HostClock
from tilewright.languages.base import BuildPlan
from tilewright.languages.python_template import render_python
from tilewright.languages.syntax import parse_tree
from tilewright.records import Case, CaseResult, Correct, EvalReport, Failed, Incorrect, Unjudged
from tilewright.records.codes import Stage
from tilewright.registry import load
from tilewright.wire.names import allowed_variations

Scalar = bool | int | float | str

PACKAGE = Path(__file__).parent.parent
TEMPLATE = Path(__file__).with_suffix(".py.j2")
HEADER = PACKAGE / "runner" / "loaders" / "tilewright.h"
JUDGE_FILES = (
    *("wire/names.py", "evaluator/seeds.py", "evaluator/judge/number_formats.py"),
    *("evaluator/judge/float64_casts.py", "evaluator/judge/variations.py"),
    *("evaluator/judge/cuda_on_cpu.py", "evaluator/judge/problem_modes.py"),
    *("evaluator/judge/error_statistics.py", "evaluator/judge/integer_comparison.py"),
    "evaluator/judge/element_errors.py",
    *("evaluator/judge/comparison.py", "evaluator/judge/official_comparison.py"),
    "evaluator/judge/nominal_errors.py",
    *("evaluator/judge/output_description.py", "evaluator/judge/weights.py"),
)
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


@dataclass(frozen=True)
class ReproductionPlan:
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
        again = "`tilewright eval --from-report` repeats the evaluation there"
        return "", f"a GPU made the inputs: {again}"
    plan = plan_of(report)
    if plan.failing is None and not plan.timed and not isinstance(report.outcome, Failed):
        if isinstance(report.outcome, Unjudged):
            return "", "nothing was judged"
        return "", "every compared output was correct; the findings above decided the verdict"
    candidate = report.request.candidate
    language, build = candidate.language, load("languages", candidate.language).plan(candidate)
    judge_files = [*JUDGE_FILES]
    if build.loader == "c_abi" or language == "triton":
        judge_files.append("runner/launch_counter.py")
    if build.loader == "c_abi":
        judge_files.append("runner/loaders/c_abi.py")
    script = render_python(
        TEMPLATE,
        needs={"triton": ", triton", "cpp": " and g++"}.get(language, ""),
        interpreted=language == "triton",
        constants=_constants(report, build, plan),
        header=HEADER.read_text(encoding="ascii") if build.loader == "c_abi" else "",
        # Only timed calls share a sample, whose values are new for each half of a block.
        calls=[{**vars(call), "computed": call.variation, "sample": None} for call in plan.calls],
        problem=report.request.problem.source.text,
        files={file.path: file.text for file in candidate.files if file.encoding == "utf-8"},
        data_files={file.path: file.text for file in candidate.files if file.encoding != "utf-8"},
        judge_files={path: inlined(path) for path in judge_files},
    )
    return script, ""


def failing_case(report: EvalReport) -> CaseResult | None:
    """Return the first input sample with a wrong output or overwritten inputs."""
    wrong = (i for i in report.cases if i.result == "fail" or i.detail.startswith("overwrote"))
    return next(wrong, None)


def plan_of(report: EvalReport) -> ReproductionPlan:
    """Return the calls up to the failing one.

    A candidate that failed without an answer has no recorded input sample for its last call. The
    plan then also holds the calls that the judge had planned next.
    """
    failed, slots = failing_case(report), Slots(report.seed)
    calls = []
    problem, hidden = report.request.problem, list[Case]()
    if report.request.protocol != "official":
        # The secret sizes, sampled again with the seed in the report.
        hidden = hidden_cases(problem, generator(report.seed, "sizes"))
    cases = {case.name: case for case in (*problem.cases, *hidden)}
    for item in report.cases:
        if item.result == "skipped" or item.case not in cases or not item.seed:
            continue
        calls.append(_call(report, slots, cases[item.case], item.input_variation, int(item.seed)))
        if item is failed:
            return ReproductionPlan(calls, len(calls) - 1, [], len(calls) - 1)
    timed = _timed(report)
    if timed:
        return ReproductionPlan(calls, None, timed, len(calls))
    if isinstance(report.outcome, Failed) and report.outcome.stage == Stage.CORRECTNESS:
        calls += _planned(report, slots, list(cases.values()))
    return ReproductionPlan(calls, None, [], 0)


def _timed(report: EvalReport) -> list[tuple[str, dict[str, Scalar], int]]:
    """Return the timed cases up to the one in which the candidate failed or was wrong."""
    outcome = report.outcome
    wrong = isinstance(outcome, Incorrect) and outcome.case.endswith(", timed")
    failed = isinstance(outcome, Failed) and outcome.stage == Stage.TIMING
    if not (wrong or failed) or report.request.protocol == "official":
        return []
    blocks = {item.case: item.blocks for item in report.comparisons}
    found, most = [], report.request.timing.max_blocks
    for case in report.request.problem.cases:
        found.append((case.name, dict(case.params), blocks.get(case.name, most)))
        if case.name not in blocks:
            break
    return found


def _usable_variations(report: EvalReport, case: str) -> list[str]:
    """Return the variations on which timed calls were made, in the order of the judge's checks."""
    passed = (item for item in report.cases if item.case == case and item.result == "pass")
    names = (item.input_variation for item in passed)
    usable = [name for name in names if name not in UNTIMED_VARIATIONS]
    return usable + unchecked_variations(report.request.problem, case, report.cases)


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
    root = report.seed
    seeds = [derive(root, "inputs", case.name, variation, each) for each in range(MAX_REPEATS)]
    repeat = seeds.index(seed) if seed in seeds else 0
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
        names = allowed_variations(allowed)
        generator(root, "variations", case.name).shuffle(names)
        plan += [(case, name) for name in names]
    for case, variation in plan:
        if (case.name, variation) not in known:
            seed = derive(root, "inputs", case.name, variation, 0)
            yield _call(report, slots, case, variation, seed)


def _constants(report: EvalReport, build: BuildPlan, plan: ReproductionPlan) -> dict[str, Any]:
    request = report.request
    problem, strict = request.problem, request.protocol == "strict"
    timed = report.environment.host.get("timed_cores")
    said = getattr(report.outcome, "message", "").strip().partition("\n")[0]
    usable = {case: _usable_variations(report, case) for case, _, _ in plan.timed}
    return {
        "PROBLEM_ID": problem.id,
        "JUDGE_SAID": f"{report.verdict}: {said}".removesuffix(": "),
        "KIND": problem.kind,
        "MODE": problem.mode,
        "GRADS": list(problem.grads),
        "DONATED": list(problem.writable_inputs),
        "KEYWORDS": list(problem.keyword_args),
        "COMPARES_OVERWRITTEN": problem.compares_overwritten,
        "BUFFERS": list(problem.buffers),
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
        "VARIATIONS": {
            case: chosen_variations(generator(report.seed, VARIATIONS_KEY, case), names)
            for case, names in usable.items()
        },
        "UNEVEN": {
            case: uneven(names, peaked=not has_refused_peaks(case, report.cases))
            for case, names in usable.items()
        },
        "HALF_TYPES": HALF_TYPES,
        "VARIED_SHARE": VARIED_SHARE,
        "RENEWALS": RENEWALS,
        "CHECK_ALL_BYTES": HostClock.check_all_bytes,
    }


def inlined(path: str) -> str:
    """Return a file of ours without its module docstring and its imports of our modules."""
    text = (PACKAGE / path).read_text(encoding="ascii")
    lines = text.splitlines(keepends=True)
    for number, node in reversed(list(enumerate(parse_tree(text).body))):
        if (number == 0 and isinstance(node, ast.Expr)) or _is_ours(node):
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines).strip() + "\n"


def _is_ours(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").startswith(("__future__", "tilewright"))
    return isinstance(node, ast.Import) and [alias.name for alias in node.names] == ["torch"]
