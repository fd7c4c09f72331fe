"""Random: programs of a space, all equally likely, whatever was found before.

It is the baseline of a comparison on a space of programs. A request asks for a program by a number,
which a proposer of the space takes modulo the number of its programs.
"""

from __future__ import annotations

from tilewright.errors import ConfigError
from tilewright.loop.driver import Strategy
from tilewright.loop.random_values import chooser
from tilewright.loop.strategies.base import FixedList, Options, Plan, Score, next_ask
from tilewright.records.events import Ask

SPACES = ("spaces/", "synth/")
"""How the problems begin whose programs can be numbered."""
NUMBERS = 2**48
"""Numbers that are drawn: for any space of less than a billion programs the remainder is uniform to
within 4 in a million."""
REQUEST = "Write program number {} of the space."


def make(plan: Plan, score: Score) -> Strategy:  # noqa: ARG001 - one signature
    """Return a new strategy; it has no options, and needs a space of programs."""
    Options.read("random", plan.options)
    if not plan.problem.startswith(SPACES):
        raise ConfigError(
            f"strategy random: {plan.problem} is no space of programs; give an address that begins "
            f"with one of {', '.join(SPACES)}, or the strategy best_of_n"
        )
    return FixedList([_request(plan, turn) for turn in range(plan.turns)])


def _request(plan: Plan, turn: int) -> Ask:
    draw = chooser(plan.seed, next_ask(plan, turn).id, "program")
    instruction = REQUEST.format(draw.randrange(NUMBERS))
    return next_ask(plan, turn, instruction=instruction, operator="random")
