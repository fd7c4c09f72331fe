"""MTMC: one model chooses an optimisation, and another one carries out exactly that one.

This is the search of MTMC (QiMeng-Kernel, arXiv 2511.20100). The policy `decider` chooses one of
the legal actions on the current program, or `stop`. The policy `coder` writes the next program. A
program that is not correct leaves the current one in place, and joins the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from tilewright.languages.action_sources import actions_on
from tilewright.languages.actions import STOP, Action, action_of
from tilewright.loop.candidate_text import code_of
from tilewright.loop.choices import Normalisation, most_likely, sampled, sentence_scores, softmax
from tilewright.loop.driver import Strategy
from tilewright.loop.random_values import chooser
from tilewright.loop.strategies.base import Options, Plan, Score, next_ask
from tilewright.records.events import Ask, Turn

DECIDER = "decider"
"""Name of the model that chooses actions, in the setting `models`."""
CODER = "coder"
"""Name of the model that writes programs, in the setting `models`."""
QUESTION = "Choose the next optimisation of the current program."


class MtmcOptions(Options):
    """How actions are chosen, and when a sequence of them ends."""

    max_steps: int = Field(default=8, ge=1)
    """Most changes of one initial program. The paper gives no stop rule."""
    normalisation: Normalisation = "token"
    """How token log-probabilities make the score of an action; `token` is TWOSOME's default."""
    decision: Literal["argmax", "sample"] = "argmax"
    """Whether the most likely action is taken, or a random one; the paper samples in training."""
    history: int = Field(default=3, ge=0)
    """Earlier changes that the decider sees. The paper says "the last few"."""
    restart: Literal["initial", "best", "none"] = "initial"
    """The beginning after a finished sequence, if requests are left: another initial program, the
    fastest program so far, or the end. The paper runs one sequence."""


class Mtmc:
    """One request at a time: an initial program, then actions and changes. Lifetime: one run."""

    def __init__(self, plan: Plan, options: MtmcOptions) -> None:
        self._plan, self._options = plan, options
        self._next = 0
        self._waits = self._over = False
        self._current: Turn | None = None
        self._action: Action | None = None
        """The chosen action that no program carries out yet."""
        self._legal: tuple[Action, ...] = ()
        self._steps = 0
        self._history: list[str] = []
        self._best: Turn | None = None

    def ask(self, limit: int) -> list[Ask]:
        """Return one request, or none while a result is missing."""
        if self._waits or self._over or limit < 1 or self._next == self._plan.turns:
            return []
        self._waits = True
        if self._current is None:
            ask = next_ask(self._plan, self._next, operator="initial", policy=CODER)
        elif self._action is None:
            ask = self._decision(self._current)
        else:
            ask = next_ask(
                self._plan,
                self._next,
                parents=(self._current.ask.id,),
                form="action",
                instruction=self._action.text,
                operator=self._action.type,
                policy=CODER,
            )
        self._next += 1
        return [ask]

    def _decision(self, current: Turn) -> Ask:
        shown = self._history[-self._options.history :] if self._options.history else []
        return next_ask(
            self._plan,
            self._next,
            tuple(shown),
            (current.ask.id,),
            role="choose",
            form="action",
            instruction=QUESTION,
            operator="decide",
            policy=DECIDER,
            choices=(*(action.text for action in self._legal), STOP),
        )

    def tell(self, turn: Turn) -> None:
        """Take the chosen action, or move to the new program if it is correct."""
        if turn.ask.role == "measure":
            self._look_again(turn)
            return
        self._waits = False
        if turn.ask.role == "choose":
            self._choose(turn)
        elif turn.judgements and turn.judgements[0].verdict != "unjudged":
            self._move(turn)

    def _choose(self, turn: Turn) -> None:
        # A refused request has no choice, and is made again.
        if turn.choice is None or self._current is None:
            return
        place = turn.choice.taken
        if turn.choice.logprobs:
            rule, choices = self._options.normalisation, turn.ask.choices
            chances = softmax(sentence_scores(turn.choice.logprobs, choices, rule))
            draw = chooser(self._plan.seed, turn.ask.id, "action")
            sample = self._options.decision == "sample"
            place = sampled(chances, draw) if sample else most_likely(chances)
        self._action = action_of(turn.ask.choices[place], self._legal)
        if self._action is None:
            self._finish()

    def _move(self, turn: Turn) -> None:
        """Count a judged program as a step, and make it the current one if it is correct."""
        correct = turn.judgements[0].verdict == "correct"
        if self._action is not None:
            self._steps += 1
            self._history.append(turn.ask.id)
        self._action = None
        if correct:
            self._note_best(turn)
            self._go_on_from(turn)
        if self._current is not None and (
            self._steps >= self._options.max_steps or not self._legal
        ):
            self._finish()

    def _go_on_from(self, turn: Turn) -> None:
        self._current = turn
        self._legal = actions_on(code_of(turn), turn.language)

    def _note_best(self, turn: Turn) -> None:
        speed = turn.judgements[0].speedup or 0.0
        known = self._best.judgements[0].speedup or 0.0 if self._best is not None else -1.0
        if speed > known:
            self._best = turn

    def _finish(self) -> None:
        """End a sequence of actions."""
        self._steps, self._current, self._action = 0, None, None
        self._history.clear()
        self._over = self._options.restart == "none"
        if self._options.restart == "best" and self._best is not None:
            self._go_on_from(self._best)
            # A program without a legal action leads nowhere: another initial one follows.
            self._current = self._current if self._legal else None

    def _look_again(self, turn: Turn) -> None:
        """Leave a program that a further trial refutes."""
        verdict = turn.judgements[0].verdict if turn.judgements else "unjudged"
        if verdict in ("correct", "unjudged"):
            return
        if self._best is not None and self._best.ask.id in turn.ask.parents:
            self._best = None
        if self._current is not None and self._current.ask.id in turn.ask.parents:
            self._finish()


def decider_that_needs_log_probabilities(options: Mapping[str, Any]) -> str:
    """Return the model that must state log-probabilities; empty if none must."""
    return DECIDER if options.get("decision") == "sample" else ""


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - one signature
    """Return a new strategy; its options are those of `MtmcOptions`."""
    return Mtmc(plan, MtmcOptions.read("mtmc", plan.options))
