"""A search as its log tells it: estimates, leaders, and what each request could show.

The log holds requests and turns in the order in which the search saw them. Taken in one after the
other, they rebuild what `RecordedHistory` and `LimitedTrajectory` knew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.loop.estimates import Estimate, Estimates
from tilewright.loop.history import NO_SNAPSHOT, Snapshot, failure_of
from tilewright.records.events import Ask, Form, Turn
from tilewright.scoring.strategy_table import REMEASURE

WITHOUT_ESTIMATES: tuple[Form, ...] = ("conversation",)
"""Forms whose prompts show no estimate, so that no copy is kept for them."""
Trajectory = tuple[str, int]
"""Problem and number of the trajectory."""


@dataclass(frozen=True)
class LeaderChange:
    """Another candidate has the best estimate of its trajectory; an empty id means none."""

    before: str
    after: str


@dataclass
class SearchProgress:
    """The state of a search up to some line of its log. Lifetime: one viewer."""

    estimates: Estimates = field(default_factory=Estimates)
    _speedups: dict[Trajectory, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    _leaders: dict[Trajectory, str] = field(default_factory=dict)
    _writers: dict[tuple[Trajectory, str], str] = field(default_factory=dict)
    """The first request that wrote a code: copies of it are no other candidates."""
    _failed: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _known: dict[str, tuple[Mapping[str, Estimate], int]] = field(default_factory=dict)
    """By request: the estimates, and the number of failed attempts on its first parent."""

    def issued(self, asks: Sequence[Ask]) -> None:
        """Keep what the prompts of new requests may show."""
        for ask in asks:
            if ask.form in WITHOUT_ESTIMATES:
                continue
            seen = tuple(dict.fromkeys((*ask.shown_turns, *ask.parents)))
            failed = len(self._failed.get(ask.parents[0], ())) if ask.parents else 0
            self._known[ask.id] = self.estimates.snapshot(seen), failed

    def finished(self, turn: Turn) -> LeaderChange | None:
        """Take in a turn; return the change of the leader that it causes, if any."""
        self.estimates.add(turn)
        ask = turn.ask
        if ask.parents and (reason := failure_of(turn)):
            self._failed[ask.parents[0]].append(reason)
        if not turn.judgements or not turn.source or ask.operator == REMEASURE:
            # The trials at the end select nothing.
            return None
        return self._led(turn)

    def _led(self, turn: Turn) -> LeaderChange | None:
        """Rank candidates by the mean of their trials, as a trajectory does; the first of equals.

        The code of a `measure` request is that of the request that wrote it.
        """
        ask, key = turn.ask, (turn.ask.problem, turn.ask.sample)
        own, before = self._speedups[key], self._leaders.get(key, "")
        asked = ask.parents[0] if ask.role == "measure" and ask.parents else ask.id
        writer = self._writers.setdefault((key, turn.source), asked)
        speedup = self.estimates.of(ask.id).speedup
        if speedup is None:
            own.pop(writer, None)
        else:
            own[writer] = speedup
        after = before
        if writer == before or (speedup is not None and speedup == own.get(before)):
            # A leader that got slower, or wrong, may be behind any other one. Of two equal ones
            # the one that had its first result before leads.
            after = max(own, key=own.__getitem__, default="")
        elif speedup is not None and (not before or speedup > own[before]):
            after = writer
        self._leaders[key] = after
        return None if after == before else LeaderChange(before, after)

    def at(self, ask: Ask) -> Snapshot:
        """Return what the prompt of a request could show when it was issued."""
        if ask.id not in self._known:
            return NO_SNAPSHOT
        estimates, count = self._known[ask.id]
        failed = self._failed.get(ask.parents[0], ())[:count] if ask.parents else ()
        return Snapshot(estimates, tuple(failed))
