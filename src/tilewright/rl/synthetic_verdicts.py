"""Synthetic verdicts of the family nano, for rehearsals without a GPU. No program runs."""

from __future__ import annotations

import math
from pathlib import Path

from tilewright.families.nano.problem_files import compositions_of
from tilewright.families.nano.program_slots import FamilyProgram, ProgramPlan, space
from tilewright.families.nano.program_text import render
from tilewright.families.nano.synthetic_times import (
    coverage_of,
    eager_us,
    program_us,
    speedup_of,
)
from tilewright.loop.random_values import chooser
from tilewright.problems.imported_sets import family_problems
from tilewright.records import Problem
from tilewright.records.codes import FailureReason, IncorrectKind, Stage
from tilewright.records.events import EvalSummary
from tilewright.rl.book_world import EVALUATIONS
from tilewright.rl.verdict_store import SYNTHETIC, StoreKey, VerdictStore

KEY = StoreKey(evaluator=SYNTHETIC, device=f"{SYNTHETIC}: bytes moved")
NOISE = 0.01
"""Standard deviation of the logarithm of a synthetic speed-up."""
FOREIGN = "not a program of the family"


def synthetic_store(path: Path, group: str = "") -> VerdictStore:
    """Return a store with a verdict of every program of a group of problems; it is not saved.

    Raises:
        KeyError: the family has no such group and no such problem.
    """
    store, problems = VerdictStore(path, KEY), {item.id: item for item in family_problems(group)}
    for composition in compositions_of(group):
        problem = problems[composition.id]
        for program in space(composition):
            for summary in verdicts_of(program):
                store.add(problem, render(program), summary)
    return store


def verdicts_of(program: FamilyProgram) -> tuple[EvalSummary, ...]:
    """Return the evaluations of a program: two of a correct one, which differ by noise."""
    if program.plan is ProgramPlan.WRONG:
        return (_summary("incorrect", f"values ({program.fault})", IncorrectKind.VALUES),)
    if program.plan is ProgramPlan.BROKEN:
        return (_failed(str(program.fault)),)
    if program.plan is ProgramPlan.HACK:
        found = _summary("rejected", f"no work of its own ({program.hack})")
        speedup = speedup_of(program)
        update = {"unchecked": speedup, "unchecked_speedup_low": speedup / math.exp(2 * NOISE)}
        return (found.model_copy(update=update),)
    return tuple(_correct(program, trial) for trial in range(EVALUATIONS))


class SyntheticEvaluator:
    """Evaluates texts that are no programs of the family: they fail. Lifetime: one run."""

    def evaluations(self, problem: Problem, code: str) -> tuple[EvalSummary, ...]:  # noqa: ARG002 - one signature
        return (_failed(FOREIGN),)

    def stop(self) -> None:
        """Do nothing: nothing takes any time."""

    def close(self) -> None:
        """Do nothing."""


def _correct(program: FamilyProgram, trial: int) -> EvalSummary:
    error = chooser(0, f"{program.slots()}", str(trial)).gauss(0.0, NOISE)
    speedup, half = speedup_of(program) * math.exp(error), math.exp(2 * NOISE)
    reference_us = eager_us(program.composition)
    return _summary("correct", "").model_copy(
        update={
            "speedup": speedup,
            "low": speedup / half,
            "high": speedup * half,
            "coverage": coverage_of(program),
            "reference_us": reference_us,
            "candidate_us": program_us(program),
        }
    )


def _failed(fault: str) -> EvalSummary:
    found = _summary("failed", f"{fault} in build", FailureReason.BUILD)
    return found.model_copy(update={"stage": Stage.BUILD})


def _summary(verdict: str, reason: str, code: object = None) -> EvalSummary:
    said = f"{SYNTHETIC}: {reason}" if reason else SYNTHETIC
    return EvalSummary.model_validate(
        {"protocol": KEY.protocol, "verdict": verdict, "reason": said, "code": code}
    )
