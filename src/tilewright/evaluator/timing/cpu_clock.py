"""How one call is timed on the CPU: released by the supervisor, stamped, and held while it is read.

A call lasts from its release until its side says where dense outputs lie. That is the side's own
word, but the whole side stands still from there on, and the judge reads the outputs in its memory:
nothing is computed, copied or swapped after the stamp.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tilewright.evaluator.judge_client.input_sample import InputSampleInfo
from tilewright.evaluator.pipeline.session import EvaluationSession
from tilewright.evaluator.runners.cpu_runner import CallTiming, Runner
from tilewright.evaluator.timing.case_timings import CaseTimes
from tilewright.evaluator.timing.gpu_clock import CudaEventClock

__all__ = ["Clock", "HostClock", "TimedCall", "clock_of"]

LOOK_SHARE, WINDOWS, WINDOW_BYTES = 0.25, 8, 512
"""In how many timed calls the inputs are looked at, and how much of them."""


@dataclass(frozen=True)
class TimedCall:
    """One call of a block: whose, which inputs, where, stirred with what, compared or not."""

    name: str
    sample: InputSampleInfo
    slot: int
    perturb: int | None
    checked: bool
    last: bool
    """Whether it is the last call with these contents, after which outputs can be compared."""
    late: int | None = None
    """Which windows of its inputs a side gets only when it is armed."""

    @property
    def base(self) -> int:
        """Return where the inputs begin in the arena, in bytes."""
        return self.slot * self.sample.slot_bytes

    def published(self) -> dict[str, Any]:
        """Return what the judge needs to write this turn's inputs."""
        return {
            "sample": self.sample.name,
            "runner": self.name,
            "base": self.base,
            "perturb": self.perturb,
            "late": self.late,
        }


class Clock(Protocol):
    """Times calls, one at a time."""

    check_all_bytes: int
    """Up to this size every output of a timed call is compared."""
    pairs: bool
    """Whether both sides of half a block get the same contents, so that one expects the other."""

    def begin(self, session: EvaluationSession, turn: TimedCall) -> None:
        """Make ready for the first call of a block."""

    def unsettle(self, session: EvaluationSession, names: list[str]) -> None:
        """Have sides that served a case before be timed as if they had not, until it is known."""

    def settle(
        self,
        session: EvaluationSession,
        times: CaseTimes,
        names: list[str],
        sample: InputSampleInfo,
    ) -> None:
        """Find out how this case is to be timed, once, and have these processes timed so."""

    def call(
        self, session: EvaluationSession, times: CaseTimes, turn: TimedCall, after: TimedCall | None
    ) -> CallTiming:
        """Make one call, have its outputs kept and compared, and note what the judge saw."""

    def warm_up(
        self, session: EvaluationSession, runner: Runner, sample: InputSampleInfo, slot: int
    ) -> float:
        """Make one call that does not count; return its seconds."""

    def publicly(
        self, session: EvaluationSession, runner: Runner, sample: InputSampleInfo
    ) -> CallTiming:
        """Make one call as KernelBench's published rules time it, on inputs that never change."""


class HostClock:
    """The supervisor's own clock, between the tokens of a page that it shares with the side."""

    check_all_bytes = 4 << 20
    pairs = True

    def begin(self, session: EvaluationSession, turn: TimedCall) -> None:
        """Write the inputs of the first call of a block."""
        session.ask("publish", turn.published())

    def unsettle(self, session: EvaluationSession, names: list[str]) -> None:
        """Do nothing: no case is timed in another way."""

    def settle(
        self,
        session: EvaluationSession,
        times: CaseTimes,
        names: list[str],
        sample: InputSampleInfo,
    ) -> None:
        """Do nothing: a caller's time has the launches in it."""

    def call(
        self, session: EvaluationSession, times: CaseTimes, turn: TimedCall, after: TimedCall | None
    ) -> CallTiming:
        """Make one call; while its side stands still, the next one's inputs are written too."""
        runner, candidate = session.runners[turn.name], session.runners["candidate"]
        fields = session.fields_of(turn.sample, turn.slot)
        # Its processes as they were at its last stamp: what came since is found below, and counts.
        before = candidate.child.tree.cpu_s()
        revealed = partial(_revealed, session, turn) if turn.late is not None else None
        timed = runner.timed_call(fields, partial(_snapshot, session, times, turn, after), revealed)
        if turn.name != "candidate":
            candidate.child.tree.look()
            times.disturbed.append((candidate.child.tree.cpu_s() - before) / timed.total_s)
        return timed

    def warm_up(
        self, session: EvaluationSession, runner: Runner, sample: InputSampleInfo, slot: int
    ) -> float:
        """Make one call that does not count."""
        session.publish(runner, sample, slot)
        return runner.timed_call(session.fields_of(sample, slot)).total_s

    def publicly(
        self, session: EvaluationSession, runner: Runner, sample: InputSampleInfo
    ) -> CallTiming:
        """Make one call on the inputs that stand in the first slot."""
        return runner.timed_call(session.fields_of(sample, 0))


def clock_of(session: EvaluationSession) -> Clock:
    """Return the clock of the device that this evaluation runs on."""
    return CudaEventClock() if session.host.device.is_gpu else HostClock()


def _revealed(session: EvaluationSession, turn: TimedCall) -> bool:
    """Have the judge write what was hidden of the inputs; tell whether the side lets it."""
    return bool(session.ask("reveal", turn.published())["written"])


def _snapshot(
    session: EvaluationSession, times: CaseTimes, turn: TimedCall, after: TimedCall | None
) -> None:
    """Have the judge copy the outputs away while their side stands still, and refresh the next."""
    places = session.runners[turn.name].output_addresses(len(turn.sample.outputs))
    alone = "eager" not in session.runners
    fields = {
        "sample": turn.sample.name,
        "runner": turn.name,
        "base": turn.base,
        "addresses": places,
        "look": _windows(session, times, turn),
        # A baseline's always: its wait would tell a candidate that comes after it what is compared.
        "keep": turn.name == "eager" or (turn.checked and turn.name == "candidate"),
        "expect": turn.checked and turn.name == "candidate" and alone,
        "compare": turn.checked and turn.last,
        "next": after.published() if after else None,
    }
    answer = session.ask("timed", fields)
    answer["alias"] &= not turn.sample.aliases
    compared = turn.checked and turn.last
    times.record_answer(answer, own=turn.name == "candidate", compared=compared)


def _windows(session: EvaluationSession, times: CaseTimes, turn: TimedCall) -> list[list[int]]:
    """Choose in secret which bytes of a candidate's inputs are looked at after this call."""
    choices = session.choices("windows", times.case, len(times.totals["candidate"]))
    size = turn.sample.size
    if turn.name != "candidate" or turn.sample.aliases or choices.random() > LOOK_SHARE:
        return []
    starts = [choices.randrange(max(size - WINDOW_BYTES, 1)) for _ in range(WINDOWS)]
    return [[start, min(start + WINDOW_BYTES, size)] for start in starts]
