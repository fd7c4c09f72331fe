"""Episodes on an action tree: a decision leads to a program, and its verdict gives the reward.

A program that is not correct leaves the current one in place, and costs a step all the same. The
coder makes exact edits, and fails with a given probability by named random numbers. No torch.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tilewright.languages.actions import STOP
from tilewright.loop.policies.base import Message
from tilewright.records.events import EvalSummary
from tilewright.rl.choices.action_tree import ActionEdge, ActionNode, ActionTree
from tilewright.scoring.ladder import Rung, ladder_reward, rung


@dataclass(frozen=True)
class EpisodeRules:
    """The rewards of an episode, its end, and the coder's errors."""

    max_steps: int = 8
    gamma: float = 0.99
    decay: float = 0.05
    decay_form: Literal["additive", "multiplicative"] = "additive"
    cumulative: bool = True
    coder_success: float = 1.0
    """Probability that an edit is exact. An edit without a known failure is always exact."""

    def reward(self, reached: Rung, step: int) -> float:
        """Return the reward of a step that reached a rung; steps count from 0."""
        return ladder_reward(
            reached, step, cumulative=self.cumulative, decay=self.decay, form=self.decay_form
        )


@dataclass(frozen=True)
class Position:
    """Where an episode stands: its current program, and the changes that led to it."""

    tree: ActionTree
    node: ActionNode
    step: int = 0
    history: tuple[str, ...] = ()
    """One line for each change so far: the action and its feedback."""


@dataclass(frozen=True)
class EditOutcome:
    """The consequence of a decision."""

    after: Position | None
    """`None`: the episode is over."""
    program: ActionNode | None = None
    """The program that the coder wrote; `None` after `stop`."""
    reached: Rung | None = None
    reward: float = 0.0
    is_unknown: bool = False
    """Whether a sentence meant no edit, or there was none to choose, so that it counted as
    `stop`."""


def begun(tree: ActionTree) -> Position:
    """Return the beginning of an episode."""
    return Position(tree, tree.by_id[tree.root])


def state_messages(position: Position, history: int) -> tuple[Message, ...]:
    """Return the prompt of a decision: problem, current program, feedback and the last changes.

    It is the state of MTMC (arXiv 2511.20100, section on the state): description, code, and the
    last `history` pairs of action and performance.
    """
    node = position.node
    lines = position.history[-history:] if history else ()
    return (
        Message(role="user", text=position.tree.opening),
        Message(role="assistant", text=node.code),
        Message(role="user", text="\n".join((node.feedback, *lines))),
    )


def decided(
    position: Position, sentence: str, rules: EpisodeRules, draw: random.Random
) -> EditOutcome:
    """Return the consequence of an action or of `stop`; `draw` decides whether the coder fails."""
    edge = next((item for item in position.node.edges if item.sentence == sentence), None)
    if edge is None or sentence == STOP:
        unknown = sentence != STOP or not position.node.edges
        return EditOutcome(None, is_unknown=unknown)
    program = position.tree.by_id[_written(edge, rules, draw)]
    reached = step_rung(position.node, program)
    reward = rules.reward(reached, position.step)
    line = f"- {sentence}: {program.feedback}"
    after = replace(
        position,
        node=program if program.is_correct else position.node,
        step=position.step + 1,
        history=(*position.history, line),
    )
    return EditOutcome(after if after.step < rules.max_steps else None, program, reached, reward)


def step_rung(before: ActionNode, program: ActionNode) -> Rung:
    """Return how far a program came, against the one before; a tree has judged ones alone."""
    return known_rung(before.verdict, program.verdict)


def known_rung(before: EvalSummary, after: EvalSummary) -> Rung:
    """Return how far a step came between two verdicts, neither of which is `unjudged`."""
    found = rung(before, after)
    assert found is not None, "an action tree has judged programs alone"
    return found


def _written(edge: ActionEdge, rules: EpisodeRules, draw: random.Random) -> str:
    if not edge.failures or draw.random() < rules.coder_success:
        return edge.child
    return draw.choice(edge.failures)


def outcomes_of(edge: ActionEdge, rules: EpisodeRules) -> Sequence[tuple[str, float]]:
    """Return the programs that an action may lead to, with their probabilities."""
    if not edge.failures:
        return [(edge.child, 1.0)]
    each = (1.0 - rules.coder_success) / len(edge.failures)
    return [(edge.child, rules.coder_success), *((name, each) for name in edge.failures)]
