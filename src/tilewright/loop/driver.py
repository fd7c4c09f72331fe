"""The loop of a run: request, answer, judge, log. A run is resumed by replaying its log."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from typing import Protocol

from tilewright.errors import RecordError
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, Event, RequestsIssued, Turn, TurnFinished


class Strategy(Protocol):
    """Decides which requests to issue. It is pure: no input or output, and no clock."""

    def ask(self, limit: int) -> list[Ask]:
        """Return at most `limit` requests; none while it waits for a result, or at its end."""

    def tell(self, turn: Turn) -> None:
        """Take in the result of a request."""


def replay(strategy: Strategy, events: Iterable[Event]) -> list[Ask]:
    """Bring a new strategy to the end of a log; return the requests without a result.

    Raises:
        RecordError: the strategy issues other requests than those of the log.
    """
    open_asks: dict[str, Ask] = {}
    for event in events:
        if isinstance(event, RequestsIssued):
            again = strategy.ask(event.limit)
            if again != list(event.asks):
                raise RecordError(
                    f"the run cannot be resumed: it requested {[ask.id for ask in event.asks][:3]} "
                    f"and would now request {[ask.id for ask in again][:3]}; restore its settings "
                    "and its problems, or start a new run"
                )
            open_asks |= {ask.id: ask for ask in event.asks}
        elif isinstance(event, TurnFinished):
            strategy.tell(event.turn)
            open_asks.pop(event.turn.ask.id, None)
    return list(open_asks.values())


def drive(  # noqa: PLR0913 - optional parts, by name
    strategy: Strategy,
    play: Callable[[Ask], Turn],
    log: EventLog,
    *,
    max_concurrency: int,
    waiting: Iterable[Ask] = (),
    admit: Callable[[Ask], bool] = lambda _: True,
    stop: Callable[[], None] = lambda: None,
    settle: Callable[[Turn], Turn] = lambda turn: turn,
    in_order: bool = False,
) -> Generator[Turn]:
    """Yield each turn after it is in the log, until the strategy ends or no request is admitted.

    `play` answers a request and judges the answer; several threads call it. `waiting` holds the
    requests of an earlier invocation without a result. `admit` tells whether the budget allows a
    request; a later invocation repeats a refused one. `stop` ends requests after an error. `settle`
    changes a turn before it is logged. With `in_order` the strategy gets turns in the order of its
    requests, so that the log does not depend on which one ends first.

    Raises:
        Exception: an error of `play`; the log holds the turns that ended before it.
    """
    with ThreadPoolExecutor(max_concurrency) as pool:
        running: list[Future[Turn]] = []
        ended: list[Future[Turn]] = []
        held = deque(waiting)
        try:
            while True:
                while limit := max_concurrency - len(running):
                    if not held and (asks := strategy.ask(limit)):
                        log.append(RequestsIssued(limit=limit, asks=tuple(asks)))
                        held.extend(asks)
                    if not held or not admit(held[0]):
                        break
                    running.append(pool.submit(play, held.popleft()))
                if not running:
                    return
                awaited = running[:1] if in_order else running
                done = wait(awaited, return_when=FIRST_COMPLETED).done
                running = [item for item in running if item not in done]
                # Finished turns are logged before an error of another one is raised.
                ended = sorted(done, key=lambda item: item.exception() is None)
                while ended:
                    yield _recorded(ended.pop(), strategy, log, settle)
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, GeneratorExit):
                # A caller that closes the generator lets the running turns end.
                stop()
            # The log keeps the turns that still end successfully.
            for future in [*ended, *running]:
                with contextlib.suppress(Exception, CancelledError):
                    _recorded(future, strategy, log, settle)
            raise


def _recorded(
    future: Future[Turn], strategy: Strategy, log: EventLog, settle: Callable[[Turn], Turn]
) -> Turn:
    turn = settle(future.result())
    log.append(TurnFinished(turn=turn))
    strategy.tell(turn)
    return turn
