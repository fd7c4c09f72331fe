"""Decisions of a search as rows: the edges of its action trees.

A node is a program, known by the digest of its source, and an edge is one action on it. Equal
programs are one node. So rows of several trajectories form tables of transitions and rewards, as
MTMC trains its decider on (QiMeng-Kernel, arXiv 2511.20100, section on the environment).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.languages.actions import STOP
from tilewright.loop.policies.base import digest_of
from tilewright.loop.prompts import messages_of
from tilewright.loop.prompts.material import Material
from tilewright.records.events import Turn
from tilewright.rl.data.conversations import MESSAGES, Row, columns
from tilewright.rl.data.logs import RunLog
from tilewright.rl.data.search_edges import SearchFacts, facts_of
from tilewright.rl.data.search_rows import Learned, Rows, material_in, said
from tilewright.scoring.ladder import ladder_reward, rung

ACTION_SHAPE: Row = {
    **columns("id string, problem string, sample int64, tree string, step int64, state string"),
    "prompt": MESSAGES,
    **columns("prompt_as_recorded bool"),
    "choices": ["string"],
    "taken": "int64",
    "logprobs": [["double"]],
    **columns("stop bool, child string, next_state string, verdict string, speedup double"),
    **columns("gain double, rung string, reward double, model string"),
}


@dataclass(frozen=True)
class Decision:
    """A choice whose consequence is not known yet."""

    turn: Turn
    material: Material
    step: int
    """Number of judged changes before it in its sequence."""


@dataclass
class _Walk:
    """One trajectory of decisions and changes. Lifetime: one export."""

    waiting: Decision | None = None
    step: int = 0
    shows_changes: bool = False
    """Whether a decision showed earlier changes; then one that shows none begins a sequence."""


@dataclass
class _Trees:
    """The programs that were met so far, and the initial one from which each was made."""

    facts: SearchFacts
    roots: dict[str, str] = field(default_factory=dict)

    def source(self, names: Sequence[str]) -> str:
        """Return the digest of the first of some requests' programs."""
        found = self.facts.nodes.get(names[0]) if names else None
        return found.source if found is not None else ""

    def note(self, turn: Turn) -> None:
        """Take in a program."""
        if turn.source and self.facts.verdict(turn.ask.id) == "correct":
            root = self.roots.get(self.source(turn.ask.parents), turn.source)
            self.roots.setdefault(turn.source, root)


def action_rows(log: RunLog, learned: Learned) -> Rows:
    """Yield each decision whose consequence is known, in the order of the consequences.

    The taken choice is the one that the next change carries out: a strategy may weigh the
    probabilities otherwise than the model. A decision with no change after it was `stop`. At the
    end of a log it counts as `stop` only if the model took that.
    """
    trees, walks = _Trees(facts_of(log.events())), dict[tuple[str, int], _Walk]()
    for turn, material in material_in(log):
        walk = walks.setdefault((turn.ask.problem, turn.ask.sample), _Walk())
        if turn.ask.role == "choose" and turn.choice is not None:
            yield from _stopped(walk, trees, learned)
            walk.shows_changes |= bool(turn.ask.shown_turns)
            if walk.shows_changes and not turn.ask.shown_turns:
                walk.step = 0
            walk.waiting = Decision(turn, material, walk.step)
        elif turn.ask.role == "propose":
            trees.note(turn)
            yield from _changed(walk, turn, trees, learned)
    for walk in walks.values():
        if walk.waiting is not None and _takes_stop(walk.waiting.turn):
            yield from _stopped(walk, trees, learned)


def _takes_stop(turn: Turn) -> bool:
    return turn.choice is not None and turn.ask.choices[turn.choice.taken] == STOP


def _changed(walk: _Walk, turn: Turn, trees: _Trees, learned: Learned) -> Rows:
    """Yield the decision that a program carries out, or the one that ended a sequence before it."""
    made = walk.waiting
    if made is None or not _carries_out(turn, made.turn):
        yield from _stopped(walk, trees, learned)
        walk.step = 0
        return
    after = turn.judgements[0] if turn.judgements else None
    if after is None or after.verdict == "unjudged":
        # The same change is requested again.
        return
    walk.waiting, walk.step = None, walk.step + 1
    problem = made.material.problem
    if not learned(turn, problem, fits=True):
        return
    parent = next(iter(made.material.parents), None)
    reached = rung(parent.judgements[0], after) if parent and parent.judgements else None
    edge = trees.facts.edge(turn.ask.id)
    correct = after.verdict == "correct"
    row = _row(made, trees, made.turn.ask.choices.index(turn.ask.instruction))
    yield (
        problem,
        {
            **row,
            "child": turn.ask.id,
            "next_state": turn.source if correct else row["state"],
            "verdict": after.verdict,
            "speedup": after.speedup,
            "gain": edge.gain if edge is not None else None,
            "rung": reached,
            "reward": ladder_reward(reached, made.step) if reached is not None else None,
        },
    )


def _carries_out(turn: Turn, decision: Turn) -> bool:
    same = turn.ask.parents[:1] == decision.ask.parents[:1] != ()
    return same and turn.ask.instruction in decision.ask.choices


def _stopped(walk: _Walk, trees: _Trees, learned: Learned) -> Rows:
    """Yield the waiting decision as one that ended its sequence."""
    made, walk.waiting = walk.waiting, None
    if made is None:
        return
    walk.step = 0
    choices = made.turn.ask.choices
    if STOP in choices and learned(made.turn, made.material.problem, fits=True):
        yield made.material.problem, _row(made, trees, choices.index(STOP))


def _row(made: Decision, trees: _Trees, taken: int) -> Row:
    """Return a decision as a row without its consequence, which `stop` has none of."""
    turn, ask = made.turn, made.turn.ask
    messages, state = messages_of(made.material), trees.source(ask.parents)
    assert turn.choice is not None
    return {
        "id": ask.id,
        "problem": ask.problem,
        "sample": ask.sample,
        "tree": trees.roots.get(state, state),
        "step": made.step,
        "state": state,
        "prompt": said(messages),
        "prompt_as_recorded": turn.prompt in ("", digest_of(messages)),
        "choices": list(ask.choices),
        "taken": taken,
        "logprobs": [list(row) for row in turn.choice.logprobs],
        "stop": ask.choices[taken] == STOP,
        **dict.fromkeys(("child", "next_state", "verdict", "speedup", "gain", "rung", "reward")),
        "model": turn.reply.model if turn.reply is not None else "",
    }
