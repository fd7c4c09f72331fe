"""Searches over the family nano without a model: a script edits programs, a store judges them.

A search is a chain of programs. Each one repairs, repeats or worsens the one before, at the rates
of `ColdStartMix`. The result is a run folder, like that of any search.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tilewright._version import __version__
from tilewright.errors import writing
from tilewright.families.nano.program_text import render
from tilewright.problems.imported_sets import family_problems
from tilewright.records import Problem
from tilewright.records.base import digest_text
from tilewright.records.event_log import EVENTS, EventLog
from tilewright.records.events import Ask, Reply, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import PROBLEMS
from tilewright.rl.book_world import feedback_of
from tilewright.rl.data.cold_start import ColdStartMix, program_sequences
from tilewright.rl.data.family_rows import Extent
from tilewright.rl.verdict_store import VerdictStore, chosen

POLICY = "script"
"""Name of the policy in the log, so that no reader takes it for a model."""


def write_searches(
    folder: Path,
    group: str,
    store: VerdictStore,
    mix: ColdStartMix,
    *,
    count: int,
    turns: int,
    seed: int,
    extent: Extent = "space",
) -> None:
    """Write so many searches of so many programs as a run folder.

    Raises:
        ConfigError: the store lacks all programs of a plan, for some problem.
        KeyError: the family has no such group and no such problem.
    """
    fresh = folder.with_name(f"{folder.name}.new")
    with writing(fresh):
        fresh.mkdir(parents=True, exist_ok=True)
        (fresh / EVENTS).unlink(missing_ok=True)
        lines = "".join(f"{problem.to_json()}\n" for problem in family_problems(group))
        (fresh / PROBLEMS).write_text(lines, encoding="utf-8")
        (fresh / "run.yaml").write_text(f"# Written by a script, seed {seed}.\n", encoding="utf-8")
    sequences = program_sequences(
        group, store, mix, count=count, turns=turns, seed=seed, extent=extent
    )
    with EventLog(fresh) as log:
        log.append(
            RunStarted(
                kind="optimize",
                name=POLICY,
                problems=f"nano/{group}",
                protocols=(store.key.protocol,),
                language="triton",
                evaluator=__version__,
                device=store.key.device,
            )
        )
        for number, (problem, programs) in enumerate(sequences):
            for turn in _turns(number, problem, list(map(render, programs)), store):
                log.append(TurnFinished(turn=turn))
    with writing(folder):
        fresh.replace(folder)


def _turns(number: int, problem: Problem, codes: list[str], store: VerdictStore) -> Iterator[Turn]:
    earlier: list[str] = []
    for place, code in enumerate(codes):
        name = f"{problem.id}#{number}.{place}"
        verdict = chosen(store.evaluations(problem, code), name)
        yield Turn(
            ask=Ask(
                id=name,
                problem=problem.id,
                sample=number,
                turn=place,
                parents=tuple(earlier[-1:]),
                shown_turns=tuple(earlier[-1:]),
                policy=POLICY,
            ),
            language="triton",
            source=digest_text(code),
            reply=Reply(text=code, model=POLICY),
            code=code,
            feedback=feedback_of(verdict),
            judgements=(verdict,),
        )
        earlier.append(name)
