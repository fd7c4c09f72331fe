"""Rows about a search as a whole: its steps, and the groups of answers to one prompt.

Each prompt is rebuilt with the estimates and the turns that existed at its request, so none
contains code of a later step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tilewright.loop.policies.base import Message, digest_of
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Document, Material
from tilewright.loop.replayed_prompts import documents_of, replayed_material
from tilewright.records import Problem
from tilewright.records.events import Turn
from tilewright.rl.data.conversations import FACTS, MESSAGES, Row, columns, facts
from tilewright.rl.data.logs import RunLog
from tilewright.rl.data.search_edges import WRITES, Edge, SearchFacts, facts_of

STEP_SHAPE: Row = {
    **FACTS,
    **columns("operator string, parent string, kind string, gain double, gain_low double"),
    **columns("gain_high double, best_step bool, prompt_as_recorded bool"),
    "prompt": MESSAGES,
    "completion": MESSAGES,
}
ANSWER_SHAPE: Row = {
    **FACTS,
    **columns("parent string, gain double, relative_reward double"),
    "completion": MESSAGES,
    "tokens": ["int64"],
    "logprobs": ["double"],
}
GROUP_SHAPE: Row = {
    **columns("id string, problem string, prompt_digest string, prompt_as_recorded bool"),
    "prompt": MESSAGES,
    "answers": [ANSWER_SHAPE],
}


class Learned(Protocol):
    """Tells whether a turn becomes part of a row, by the options of the export; counts it."""

    def __call__(self, turn: Turn, problem: Problem, *, fits: bool) -> bool:
        """Return `False` also if the turn does not fit the format."""


Rows = Iterator[tuple[Problem, Row]]


def step_rows(log: RunLog, learned: Learned) -> Rows:
    """Yield each step that is an example, in the order of the log."""
    known = facts_of(log.events())
    best = known.best_steps()
    for turn, material in written(log):
        edge = known.edge(turn.ask.id)
        fits = edge is not None and known.keeps(turn.ask.id, edge)
        judged = known.judged(turn)
        if learned(judged, material.problem, fits=fits) and edge is not None:
            row = {**_step(judged, edge), "best_step": turn.ask.id in best}
            yield material.problem, {**row, **_prompt(turn, material)}


def _step(judged: Turn, edge: Edge) -> Row:
    return {
        **facts(judged),
        "operator": judged.ask.operator,
        "parent": edge.parent,
        "kind": edge.kind,
        "gain": edge.gain,
        "gain_low": edge.low,
        "gain_high": edge.high,
        "completion": completion(judged),
    }


def group_rows(log: RunLog, learned: Learned) -> Rows:
    """Yield each prompt with all answers to it, in the order of the first ones."""
    known, groups = facts_of(log.events()), dict[tuple[str, str], list[str]]()
    for turn, material in written(log):
        judged = known.judged(turn)
        if learned(judged, material.problem, fits=bool(judged.judgements)):
            key = (material.problem.id, _digest(turn, material))
            groups.setdefault(key, []).append(turn.ask.id)
    # The memory holds names, so the texts are read again.
    for turn, material in written(log, named=False):
        name, digest = material.problem.id, _digest(turn, material)
        members = groups.get((name, digest), ())
        if members and members[0] == turn.ask.id:
            row: Row = {"id": f"{name}@{digest[:16]}", "problem": name, "prompt_digest": digest}
            answers = [known.judged(found) for each in members if (found := log.turn(each))]
            row["answers"] = [_answer(answer, known) for answer in answers]
            yield material.problem, {**row, **_prompt(turn, material)}


def _digest(turn: Turn, material: Material) -> str:
    return turn.prompt or digest_of(messages_of(material))


def _answer(judged: Turn, known: SearchFacts) -> Row:
    edge, reply = known.edge(judged.ask.id), judged.reply
    assert reply is not None
    return {
        **facts(judged),
        "parent": edge.parent if edge is not None else None,
        "gain": edge.gain if edge is not None else None,
        "relative_reward": _relative_reward(judged, known, edge),
        "completion": completion(judged),
        "tokens": list(reply.tokens),
        "logprobs": list(reply.logprobs),
    }


def _relative_reward(judged: Turn, known: SearchFacts, edge: Edge | None) -> float | None:
    """Return Kernel-Smith's reward: the gain over the parent, and 0 unless correct.

    `None`: unjudged, or no gain is known, as over a parent that is not correct.
    """
    verdict = known.verdict(judged.ask.id)
    if verdict is None or edge is None:
        return None
    return edge.gain if verdict == "correct" else 0.0


def written(log: RunLog, *, named: bool = True) -> Iterator[tuple[Turn, Material]]:
    """Yield each turn of a log whose reply is a program, with the material of its prompt."""
    for turn, material in material_in(log, named=named):
        if turn.ask.role in WRITES and turn.reply is not None:
            yield turn, material


def material_in(log: RunLog, *, named: bool = True) -> Iterator[tuple[Turn, Material]]:
    """Yield the turns of a log that a model answered, with the material of their prompts.

    With `named` the lines that cannot be read are named.
    """

    def documents(digests: Sequence[str]) -> list[Document]:
        return list(documents_of(log.folder, digests))

    problem: Callable[[str], Problem | None] = log.problem
    turn: Callable[[str], Turn | None] = log.turn
    yield from replayed_material(log.events(named=named), problem, documents, turn)


def _prompt(turn: Turn, material: Material) -> Row:
    messages = messages_of(material)
    same = turn.prompt in ("", digest_of(messages))
    return {"prompt": said(messages), "prompt_as_recorded": same}


def said(messages: Sequence[Message]) -> list[Row]:
    """Return messages as rows."""
    return [{"role": item.role, "content": item.text} for item in messages]


def completion(turn: Turn) -> list[Row]:
    """Return the reply of a turn as a row."""
    assert turn.reply is not None
    return [{"role": "assistant", "content": turn.reply.text}]
