"""How one call is timed on the CPU: released by the supervisor, stamped, and held while it is read.

A call lasts from its release until its side says where dense outputs lie. That is the side's own
word, but the whole side stands still from there on, and the judge reads the outputs in its memory:
nothing is computed, copied or swapped after the stamp.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tilewright.evaluator.device_clock import DeviceClock
from tilewright.evaluator.drawn import Drawn
from tilewright.evaluator.evaluation import Evaluation
from tilewright.evaluator.sides import Side, Timed
from tilewright.evaluator.times import CaseTimes

__all__ = ["Clock", "SupervisorClock", "Turn", "clock_of"]

LOOK_SHARE, WINDOWS, WINDOW_BYTES = 0.25, 8, 512
"""In how many timed calls the inputs are looked at, and how much of them."""


@dataclass(frozen=True)
class Turn:
    """One call of a block: whose, which inputs, where, stirred with what, compared or not."""

    name: str
    drawn: Drawn
    slot: int
    stir: int | None
    checked: bool
    last: bool
    """Whether it is the last call with these contents, after which outputs can be compared."""
    late: int | None = None
    """Which windows of its inputs a side gets only when it is armed."""

    @property
    def base(self) -> int:
        """Return where the inputs begin in the arena, in bytes."""
        return self.slot * self.drawn.slot_bytes

    def published(self) -> dict[str, Any]:
        """Return what the judge needs to write this turn's inputs."""
        return {
            "draw": self.drawn.name,
            "side": self.name,
            "base": self.base,
            "stir": self.stir,
            "late": self.late,
        }


class Clock(Protocol):
    """Times calls, one at a time."""

    check_all_bytes: int
    """Up to this size every output of a timed call is compared."""
    pairs: bool
    """Whether both sides of half a block get the same contents, so that one expects the other."""

    def begin(self, evaluation: Evaluation, turn: Turn) -> None:
        """Make ready for the first call of a block."""

    def unsettle(self, evaluation: Evaluation, names: list[str]) -> None:
        """Have sides that served a case before be timed as if they had not, until it is known."""

    def settle(
        self, evaluation: Evaluation, times: CaseTimes, names: list[str], drawn: Drawn
    ) -> None:
        """Find out how this case is to be timed, once, and have these processes timed so."""

    def call(
        self, evaluation: Evaluation, times: CaseTimes, turn: Turn, after: Turn | None
    ) -> Timed:
        """Make one call, have its outputs kept and compared, and note what the judge saw."""

    def warm_up(self, evaluation: Evaluation, side: Side, drawn: Drawn, slot: int) -> float:
        """Make one call that does not count; return its seconds."""

    def publicly(self, evaluation: Evaluation, side: Side, drawn: Drawn) -> Timed:
        """Make one call as KernelBench's published rules time it, on inputs that never change."""


class SupervisorClock:
    """The supervisor's own clock, between the tokens of a page that it shares with the side."""

    check_all_bytes = 4 << 20
    pairs = True

    def begin(self, evaluation: Evaluation, turn: Turn) -> None:
        """Write the inputs of the first call of a block."""
        evaluation.ask("publish", turn.published())

    def unsettle(self, evaluation: Evaluation, names: list[str]) -> None:
        """Do nothing: no case is timed in another way."""

    def settle(
        self, evaluation: Evaluation, times: CaseTimes, names: list[str], drawn: Drawn
    ) -> None:
        """Do nothing: a caller's time has the launches in it."""

    def call(
        self, evaluation: Evaluation, times: CaseTimes, turn: Turn, after: Turn | None
    ) -> Timed:
        """Make one call; while its side stands still, the next one's inputs are written too."""
        side, candidate = evaluation.sides[turn.name], evaluation.sides["candidate"]
        fields = evaluation.fields_of(turn.drawn, turn.slot)
        # Its processes as they were at its last stamp: what came since is found below, and counts.
        before = candidate.child.tree.cpu_s()
        revealed = partial(_revealed, evaluation, turn) if turn.late is not None else None
        timed = side.timed_call(
            fields, partial(_snapshot, evaluation, times, turn, after), revealed
        )
        if turn.name != "candidate":
            candidate.child.tree.look()
            times.disturbed.append((candidate.child.tree.cpu_s() - before) / timed.total_s)
        return timed

    def warm_up(self, evaluation: Evaluation, side: Side, drawn: Drawn, slot: int) -> float:
        """Make one call that does not count."""
        evaluation.publish(side, drawn, slot)
        return side.timed_call(evaluation.fields_of(drawn, slot)).total_s

    def publicly(self, evaluation: Evaluation, side: Side, drawn: Drawn) -> Timed:
        """Make one call on the inputs that stand in the first slot."""
        return side.timed_call(evaluation.fields_of(drawn, 0))


def clock_of(evaluation: Evaluation) -> Clock:
    """Return the clock of the device that this evaluation runs on."""
    return DeviceClock() if evaluation.host.device.is_gpu else SupervisorClock()


def _revealed(evaluation: Evaluation, turn: Turn) -> bool:
    """Have the judge write what was hidden of the inputs; tell whether the side lets it."""
    return bool(evaluation.ask("reveal", turn.published())["written"])


def _snapshot(evaluation: Evaluation, times: CaseTimes, turn: Turn, after: Turn | None) -> None:
    """Have the judge copy the outputs away while their side stands still, and refresh the next."""
    places = evaluation.sides[turn.name].output_addresses(len(turn.drawn.outputs))
    alone = "eager" not in evaluation.sides
    fields = {
        "draw": turn.drawn.name,
        "side": turn.name,
        "base": turn.base,
        "addresses": places,
        "look": _windows(evaluation, times, turn),
        # A baseline's always: its wait would tell a candidate that comes after it what is compared.
        "keep": turn.name == "eager" or (turn.checked and turn.name == "candidate"),
        "expect": turn.checked and turn.name == "candidate" and alone,
        "compare": turn.checked and turn.last,
        "next": after.published() if after else None,
    }
    answer = evaluation.ask("timed", fields)
    answer["alias"] &= not turn.drawn.aliases
    compared = turn.checked and turn.last
    times.note_answer(answer, own=turn.name == "candidate", compared=compared)


def _windows(evaluation: Evaluation, times: CaseTimes, turn: Turn) -> list[list[int]]:
    """Choose in secret which bytes of a candidate's inputs are looked at after this call."""
    choices = evaluation.choices("windows", times.case, len(times.totals["candidate"]))
    size = turn.drawn.size
    if turn.name != "candidate" or turn.drawn.aliases or choices.random() > LOOK_SHARE:
        return []
    starts = [choices.randrange(max(size - WINDOW_BYTES, 1)) for _ in range(WINDOWS)]
    return [[start, min(start + WINDOW_BYTES, size)] for start in starts]
