"""Turns, prompts and censuses of spaces, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.loop.estimates import Estimates
from tilewright.loop.policies.base import Message
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Material
from tilewright.problems.imported_sets import space_problems
from tilewright.records import Problem, ReportEnvironment, Rules, TimingPlan
from tilewright.records.census import CensusHeader, CensusRow, line_of, source_digest
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.spaces.space import Knobs, Space, Value, source


def problem_of(space: Space) -> Problem:
    return space_problems(space.name)[0]


def changed(space: Space, **more: Value) -> Knobs:
    """Return the start of a space with other values of some knobs."""
    return {**space.start, **more}


def turn_of(space: Space, knobs: Mapping[str, Value], speedup: float | None, name: str) -> Turn:
    """Return the turn of a program, correct with its speed-up or incorrect."""
    code = source(space, knobs)
    summary = EvalSummary(
        protocol="strict",
        verdict="incorrect" if speedup is None else "correct",
        speedup=speedup,
        low=speedup and speedup * 0.98,
        high=speedup and speedup * 1.02,
        reason="values" if speedup is None else "",
    )
    said = f"Verdict: correct. Speed against eager PyTorch: {speedup}x [0.1, 0.2] (95 % interval)."
    return Turn(
        ask=Ask(id=name, problem=f"spaces/{space.name}"),
        language="cpp" if space.tag == "cpp" else "triton",
        source=source_digest(code),
        reply=Reply(text=f"I changed it.\n\n```{space.tag}\n{code}```\n"),
        judgements=(summary,),
        feedback="Verdict: incorrect (values)." if speedup is None else said,
    )


def prompt_of(space: Space, form: str, shown: Sequence[Turn] = (), **more: Any) -> list[Message]:
    """Return the messages of a prompt in one of the real forms."""
    estimates = Estimates()
    turns = (*shown, *more.get("parents", ()))
    for turn in turns:
        estimates.add(turn)
    known = estimates.snapshot(tuple(turn.ask.id for turn in turns))
    fields = {"form": form, "shown": shown, "estimates": known, **more}
    return list(messages_of(Material(problem_of(space), **fields)))


def header_of(space: Space, programs: int) -> CensusHeader:
    problem = problem_of(space)
    return CensusHeader(
        space=space.name,
        problem=problem.id,
        reference=source_digest(problem.source.text),
        programs=programs,
        protocol="strict",
        baselines=("eager",),
        rules=Rules(),
        timing=TimingPlan(),
        environment=ReportEnvironment(
            device="cpu", device_name="a test's device", host={}, versions={"python": "3"}
        ),
        method="host_clock",
        evaluator="0.1.0",
        date="2026-11-26",
    )


def correct_row(space: Space, knobs: Knobs, speedup: float, error: float = 0.02) -> CensusRow:
    """Return the row of a correct program; `error` is the half-width of its interval."""
    low, high = speedup * (1 - error), speedup * (1 + error)
    case = {"case": "only", "baseline": "eager", "baseline_us": 100 * speedup, "candidate_us": 100}
    timed = {"speedup": speedup, "low": low, "high": high}
    return CensusRow.model_validate(
        {
            "program": source_digest(source(space, knobs)),
            "knobs": knobs,
            "outcome": {"verdict": "correct"},
            "seconds": 1.5,
            **timed,
            "cases": [{**case, **timed, "blocks": 8}],
        }
    )


def bad_row(space: Space, knobs: Knobs, outcome: dict[str, Any]) -> CensusRow:
    """Return the row of a program that is not correct."""
    program = source_digest(source(space, knobs))
    row = {"program": program, "knobs": knobs, "outcome": outcome, "seconds": 0.5}
    return CensusRow.model_validate(row)


def write_census(path: Path, space: Space, rows: Sequence[CensusRow], programs: int = 0) -> Path:
    """Write a census file; return its path."""
    header = header_of(space, programs or len({row.program for row in rows}))
    path.write_text(line_of(header) + "".join(map(line_of, rows)), encoding="utf-8")
    return path
