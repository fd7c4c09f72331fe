"""The interface of all executors, and the worker pool of the local and the Ray executor."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from tilewright import errors
from tilewright.executors.scheduling import WorkerLoad, assign, remembered
from tilewright.records import EvalReport, EvalRequest

Progress = Callable[[str, dict[str, Any]], None]
"""Receives each event of an evaluation and its fields."""


def ignore_progress(event: str, fields: dict[str, Any]) -> None:
    """Ignore an event."""


def failure(fields: dict[str, Any]) -> errors.TilewrightError:
    """Return the error that another process of tilewright has described."""
    known = {
        name: kind
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.TilewrightError)
    }
    return known.get(fields["type"], errors.InfrastructureError)(fields["message"])


class Executor(Protocol):
    """Judges requests, several at once where it can. Lifetime: until `close`."""

    def evaluate(
        self,
        request: EvalRequest,
        progress: Progress,
        *,
        checks: tuple[str, ...] | None = None,
    ) -> EvalReport:
        """Judge one candidate.

        Raises:
            ProblemError: the problem cannot be used.
            InfrastructureError: tilewright itself failed.
        """

    def close(self) -> None:
        """Wait until running evaluations have finished, and end the workers."""

    def kill(self) -> None:
        """End running evaluations; their callers get an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


Worker = TypeVar("Worker", bound=WorkerLoad)


@dataclass(eq=False)
class Ticket(Generic[Worker]):
    """A request that waits for a worker, and then has one."""

    problem: str
    skips: int = 0
    worker: Worker | None = None


class WorkerPool(Executor, Generic[Worker]):
    """Gives each request a worker by `scheduling.assign`. Safe to use from several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[Ticket[Worker]] = []
        self._closed = False

    @abstractmethod
    def _candidates(self) -> tuple[Sequence[Worker], Set[str]]:
        """Return workers for a request, and problems worth waiting for; called while locked."""

    @contextmanager
    def _acquired(
        self, problem: str, poll_s: float, on_poll: Callable[[], None] | None = None
    ) -> Iterator[Worker]:
        """Yield a worker for a problem; `on_poll` is called while none is free, and may raise."""
        ticket: Ticket[Worker] = Ticket(problem)
        with self._changed:
            self._waiting.append(ticket)
            self._dispatch()
        try:
            yield self._wait(ticket, poll_s, on_poll)
        finally:
            with self._changed:
                if ticket.worker is None:
                    self._waiting.remove(ticket)
                else:
                    ticket.worker.load -= 1
                    self._released(ticket.worker)
                self._dispatch()

    def _wait(
        self, ticket: Ticket[Worker], poll_s: float, on_poll: Callable[[], None] | None
    ) -> Worker:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: ticket.worker or self._closed, poll_s)
                if self._closed:
                    raise errors.InfrastructureError("the executor was closed")
                if ticket.worker is not None:
                    return ticket.worker
            if on_poll is not None:
                on_poll()

    def _released(self, worker: Worker) -> None:
        """Note that a worker has finished a request; called with the lock held."""

    def _dispatch(self) -> None:
        """Give workers to waiting requests; called with the lock held."""
        while self._waiting:
            workers, busy = self._candidates()
            waiting = [(item.problem, item.skips) for item in self._waiting]
            chosen = assign(waiting, workers, busy) if workers else None
            if chosen is None:
                break
            index, number = chosen
            for earlier in self._waiting[:index]:
                earlier.skips += 1
            ticket, worker = self._waiting.pop(index), workers[number]
            worker.load += 1
            worker.cached = remembered(worker.cached, ticket.problem)
            ticket.worker = worker
        self._changed.notify_all()

    def _kill(self) -> None:
        """Let no waiting request begin; called with the lock held."""
        self._closed = True
        self._changed.notify_all()
