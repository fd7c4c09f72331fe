"""Conversations about programs of the family nano, for supervised training before RL.

A conversation begins with a reference and a program. After its feedback the program is repaired,
repeated or made worse at stated rates. The feedback is that of the world `book`, from a store of
verdicts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tilewright.errors import ConfigError
from tilewright.families.nano.compositions import Composition, composition_of
from tilewright.families.nano.problem_files import reference_of
from tilewright.families.nano.program_slots import FamilyProgram, ProgramPlan
from tilewright.families.nano.program_text import render
from tilewright.problems.imported_sets import family_problems
from tilewright.records import Problem
from tilewright.rl.book_world import feedback_of
from tilewright.rl.data.family_rows import EXTENTS, Extent, Listed
from tilewright.rl.verdict_store import VerdictStore, chosen

BETTER: dict[ProgramPlan, tuple[ProgramPlan, ...]] = {
    ProgramPlan.BROKEN: (ProgramPlan.FUSED, ProgramPlan.SPLIT, ProgramPlan.LAZY),
    ProgramPlan.WRONG: (ProgramPlan.FUSED, ProgramPlan.SPLIT, ProgramPlan.LAZY),
    ProgramPlan.HACK: (ProgramPlan.FUSED, ProgramPlan.SPLIT, ProgramPlan.LAZY),
    ProgramPlan.LAZY: (ProgramPlan.FUSED, ProgramPlan.SPLIT),
    ProgramPlan.SPLIT: (ProgramPlan.FUSED,),
    ProgramPlan.FUSED: (ProgramPlan.FUSED,),
}
"""The plans of a repaired program, by the plan of the program before."""
WORSE: dict[ProgramPlan, tuple[ProgramPlan, ...]] = {
    ProgramPlan.FUSED: (ProgramPlan.LAZY, ProgramPlan.WRONG, ProgramPlan.BROKEN),
    ProgramPlan.SPLIT: (ProgramPlan.LAZY, ProgramPlan.WRONG, ProgramPlan.BROKEN),
    ProgramPlan.LAZY: (ProgramPlan.WRONG, ProgramPlan.BROKEN),
    ProgramPlan.HACK: (ProgramPlan.WRONG, ProgramPlan.BROKEN),
    ProgramPlan.WRONG: (ProgramPlan.BROKEN,),
    ProgramPlan.BROKEN: (ProgramPlan.BROKEN,),
}
"""The plans of a program that is worse than the one before."""


@dataclass(frozen=True)
class ColdStartMix:
    """Shares of plans in the first turn, which sum to 1, and the rates of the next turns."""

    fused: float = 0.15
    split: float = 0.15
    lazy: float = 0.30
    wrong: float = 0.20
    broken: float = 0.08
    hack: float = 0.12
    repair: float = 0.6
    regress: float = 0.2
    """The rest of the next turns repeats the program."""

    def __post_init__(self) -> None:
        for item in fields(self):
            if not 0 <= getattr(self, item.name) <= 1:
                raise ConfigError(f"{item.name} is {getattr(self, item.name)}; give 0 to 1")
        total = sum(self.plans().values())
        if abs(total - 1) > 1e-9:
            raise ConfigError(f"the shares of plans sum to {total:g}; they must sum to 1")
        if self.repair + self.regress > 1:
            raise ConfigError(f"repair and regress sum to {self.repair + self.regress:g}, above 1")

    def plans(self) -> dict[ProgramPlan, float]:
        """Return the share of each plan."""
        return {plan: getattr(self, plan.value) for plan in ProgramPlan}


@dataclass(frozen=True)
class _Programs:
    """The programs of a problem, by plan."""

    composition: Composition
    problem: Problem
    by_plan: dict[ProgramPlan, list[FamilyProgram]]


def cold_start(
    group: str,
    store: VerdictStore,
    mix: ColdStartMix,
    *,
    count: int,
    turns: int,
    seed: int,
    extent: Extent = "space",
) -> Iterator[dict[str, Any]]:
    """Yield conversations with `messages`; equal arguments give equal conversations.

    A conversation uses only programs that the store has, of the census or of the whole space.

    Raises:
        ConfigError: the store lacks all programs of a plan, for some problem.
        KeyError: the family has no such group and no such problem.
    """
    sequences = program_sequences(
        group, store, mix, count=count, turns=turns, seed=seed, extent=extent
    )
    for number, (problem, programs) in enumerate(sequences):
        spoken, question = list[dict[str, str]](), reference_of(composition_of(problem.id))
        for turn, program in enumerate(programs):
            code = render(program)
            spoken.append({"role": "user", "content": question})
            spoken.append({"role": "assistant", "content": code})
            known = store.evaluations(problem, code)
            question = feedback_of(chosen(known, f"cold start/{seed}/{number}.{turn}"))
        yield {"id": f"cold/{seed}/{number}", "problem": problem.id, "messages": spoken}


def program_sequences(
    group: str,
    store: VerdictStore,
    mix: ColdStartMix,
    *,
    count: int,
    turns: int,
    seed: int,
    extent: Extent = "space",
) -> Iterator[tuple[Problem, list[FamilyProgram]]]:
    """Yield sequences of programs, each made from the one before; arguments as `cold_start`."""
    listed = [_known(problem, store, EXTENTS[extent]) for problem in family_problems(group)]
    draw = random.Random(f"cold start/{seed}")
    for _ in range(count):
        programs, made = draw.choice(listed), list[FamilyProgram]()
        for _ in range(turns):
            made.append(_next(programs, made[-1] if made else None, mix, draw))
        yield programs.problem, made


def _known(problem: Problem, store: VerdictStore, listed: Listed) -> _Programs:
    composition = composition_of(problem.id)
    found: dict[ProgramPlan, list[FamilyProgram]] = {plan: [] for plan in ProgramPlan}
    for program in listed(composition):
        if store.evaluations(problem, render(program)):
            found[program.plan].append(program)
    if lacking := [plan.value for plan, programs in found.items() if not programs]:
        raise ConfigError(
            f"{store.path} has no program of the plans {', '.join(lacking)} for {problem.id}; "
            "evaluate the census first"
        )
    return _Programs(composition, problem, found)


def _next(
    programs: _Programs, before: FamilyProgram | None, mix: ColdStartMix, draw: random.Random
) -> FamilyProgram:
    if before is None:
        shares = mix.plans()
        (plan,) = draw.choices(list(shares), list(shares.values()))
        return draw.choice(programs.by_plan[plan])
    value = draw.random()
    if value < mix.repair:
        return _of_plans(programs, BETTER[before.plan], before, draw)
    if value < mix.repair + mix.regress:
        return _of_plans(programs, WORSE[before.plan], before, draw)
    return before


def _of_plans(
    programs: _Programs, plans: Sequence[ProgramPlan], before: FamilyProgram, draw: random.Random
) -> FamilyProgram:
    """Return a program of some plan, with the sizes of the one before if there is such a one."""
    plan = draw.choice(plans)
    alike = [
        item
        for item in programs.by_plan[plan]
        if (item.block, item.warps) == (before.block, before.warps) and item != before
    ]
    return draw.choice(alike or programs.by_plan[plan])
