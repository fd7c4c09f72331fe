"""Steps of a search as training data: contexts for RL, and conversations of one step.

The rules are those of Kernel-Smith (arXiv 2603.28342, section on training). A context holds the
parent of a step and nothing later, so no prompt contains the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from tilewright.loop.candidate_text import code_of
from tilewright.records.base import digest_text
from tilewright.records.events import Turn
from tilewright.rl.book_world import family_messages
from tilewright.rl.data.conversations import Row, columns
from tilewright.rl.data.logs import RunLog
from tilewright.rl.data.search_edges import WRITES, SearchFacts, facts_of
from tilewright.rl.data.search_rows import Learned, Rows, step_rows
from tilewright.rl.prompt_contexts import PromptContext

CONTEXT_SHAPE: Row = {**columns("id string, problem string"), "shown": ["string"]}
STEP_SFT_SHAPE: Row = {
    **columns("id string, problem string"),
    "messages": [columns("role string, content string, weight int64")],
}


ContextSteps = Literal["best", "all", "first"]
"""The best step of each trajectory, all steps, or the first one of each."""


def context_rows(log: RunLog, learned: Learned) -> Rows:
    """Yield the context of the best step of each trajectory, in the order of the log."""
    known = facts_of(log.events())
    best = known.best_steps()
    for turn in log.turns():
        problem = log.problem(turn.ask.problem)
        if problem is None or turn.ask.id not in best:
            continue
        if learned(known.judged(turn), problem, fits=is_example(turn, known)):
            yield problem, context_of(turn, known, log).row()


def step_sft_rows(log: RunLog, learned: Learned) -> Rows:
    """Yield each step that is an example as a conversation; the loss covers its reply alone."""
    for problem, row in step_rows(log, learned):
        asked = [{**message, "weight": 0} for message in row["prompt"]]
        said = [{**message, "weight": 1} for message in row["completion"]]
        yield problem, {"id": row["id"], "problem": problem.id, "messages": [*asked, *said]}


def contexts_in(log: RunLog, steps: ContextSteps = "best") -> Iterator[PromptContext]:
    """Yield the contexts of some steps of a log that are examples, each one once."""
    known, seen = facts_of(log.events()), set[tuple[str, tuple[str, ...]]]()
    best, begun = known.best_steps(), set[tuple[str, int]]()
    for turn in log.turns():
        if not is_example(turn, known):
            continue
        trajectory = turn.ask.problem, turn.ask.sample
        is_chosen = {
            "best": turn.ask.id in best,
            "all": True,
            "first": trajectory not in begun,
        }
        begun.add(trajectory)
        if not is_chosen[steps]:
            continue
        found = context_of(turn, known, log)
        key = (found.problem, tuple(code_of(item) for item in found.shown))
        if key not in seen:
            seen.add(key)
            yield found


def step_conversations(log: RunLog) -> Iterator[Row]:
    """Yield each step that is an example as a conversation, in the prompts of the family nano.

    The loss covers the program of the step alone. Equal steps of two trajectories are one row.
    """
    known, seen = facts_of(log.events()), set[tuple[str, ...]]()
    for turn in log.turns():
        problem = log.problem(turn.ask.problem)
        if problem is None or not is_example(turn, known):
            continue
        shown = context_of(turn, known, log).shown
        key = (problem.id, *map(code_of, shown), code_of(turn))
        if key in seen:
            continue
        seen.add(key)
        asked = family_messages(problem, shown)
        said = [{"role": item.role, "content": item.text, "weight": 0} for item in asked]
        answer = {"role": "assistant", "content": code_of(turn), "weight": 1}
        yield {"id": turn.ask.id, "problem": problem.id, "messages": [*said, answer]}


def is_example(turn: Turn, known: SearchFacts) -> bool:
    """Tell whether a turn is a step to learn from: correct, and faster than a correct parent."""
    edge = known.edge(turn.ask.id) if turn.ask.role in WRITES else None
    return edge is not None and known.keeps(turn.ask.id, edge)


def context_of(turn: Turn, known: SearchFacts, log: RunLog) -> PromptContext:
    """Return the stored context of a step: its problem and its parent."""
    edge = known.edge(turn.ask.id)
    parent = log.turn(edge.parent) if edge is not None and edge.parent else None
    if parent is None:
        return PromptContext(id=f"context/{turn.ask.id}", problem=turn.ask.problem, shown=())
    judged = known.judged(parent)
    # Requests of two runs may have one id, and a training has requests of its own.
    name = f"context/{turn.ask.id}/{digest_text(judged.to_json())[:12]}"
    ask = judged.ask.model_copy(update={"id": f"{name}/shown", "parents": (), "shown_turns": ()})
    shown = (judged.model_copy(update={"ask": ask}),)
    return PromptContext(id=name, problem=turn.ask.problem, shown=shown)
