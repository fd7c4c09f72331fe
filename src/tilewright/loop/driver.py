"""The driver turns the crank: ask, answer, judge, log, tell. Resumed by replaying the log."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from typing import Protocol

from tilewright.errors import RecordError
from tilewright.records.event_log import EventLog
from tilewright.records.events import Ask, RequestsIssued, RunStarted, Stepped, Turn, TurnFinished

__all__ = ["Play", "Strategy", "drive", "replay"]

Play = Callable[[Ask], Turn]
"""Answers an ask and judges the answer."""


class Strategy(Protocol):
    """Decides what to ask. Pure: no input or output, no clock."""

    def ask(self, limit: int) -> list[Ask]:
        """Return at most `limit` asks; none while it has to be told something first, or is done."""

    def tell(self, turn: Turn) -> None:
        """Take in what came of an ask."""


def replay(
    strategy: Strategy, events: Iterable[RunStarted | RequestsIssued | TurnFinished | Stepped]
) -> list[Ask]:
    """Bring a fresh strategy to where a log ends; return what was asked and never told.

    Raises:
        RecordError: the strategy asks something else than it did then.
    """
    open_asks: dict[str, Ask] = {}
    for event in events:
        if isinstance(event, RequestsIssued):
            again = strategy.ask(event.limit)
            if again != list(event.asks):
                raise RecordError(
                    f"the run cannot be resumed: it asked {[ask.id for ask in event.asks][:3]}, "
                    f"and now would ask {[ask.id for ask in again][:3]}; were its inputs changed?"
                )
            open_asks |= {ask.id: ask for ask in event.asks}
        elif isinstance(event, TurnFinished):
            strategy.tell(event.turn)
            open_asks.pop(event.turn.ask.id, None)
    return list(open_asks.values())


def drive(
    strategy: Strategy,
    play: Play,
    log: EventLog,
    *,
    max_concurrency: int,
    waiting: Iterable[Ask] = (),
    admit: Callable[[Ask], bool] = lambda _: True,
    stop: Callable[[], None] = lambda: None,
) -> Generator[Turn]:
    """Play until the strategy is done, or nothing more is admitted; yield turns from the disk.

    Args:
        strategy: as `replay` left it, or fresh.
        play: called from several threads.
        log: open at its end.
        max_concurrency: how many asks are played at once.
        waiting: asks of an earlier sitting that were never told.
        admit: whether there is budget for an ask; one that is refused is asked in a later sitting.
        stop: ends what is being played, when the caller wants no more or something failed.

    Raises:
        Exception: what `play` raises; turns that have ended by then are on the disk.
    """
    with ThreadPoolExecutor(max_concurrency) as pool:
        running: set[Future[Turn]] = set()
        ended: list[Future[Turn]] = []
        held = deque(waiting)

        try:
            while True:
                while len(running) < max_concurrency and _next(
                    strategy, log, held, max_concurrency, running
                ):
                    if not admit(held[0]):
                        break
                    running.add(pool.submit(play, held.popleft()))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                # What failed waits until what did not is on the disk.
                ended = sorted(done, key=lambda item: item.exception() is None)
                while ended:
                    turn = ended.pop().result()
                    log.append(TurnFinished(turn=turn))
                    strategy.tell(turn)
                    yield turn
        except BaseException as error:
            for future in running:
                future.cancel()
            if not isinstance(error, GeneratorExit):
                # Who wants no more turns lets those under way end.
                stop()
            _save(strategy, log, [*ended, *running])
            raise


def _save(strategy: Strategy, log: EventLog, left: Iterable[Future[Turn]]) -> None:
    """Put on the disk what has ended, or ends all the same, now that the run does."""
    for future in left:
        with contextlib.suppress(Exception, CancelledError):
            turn = future.result()
            log.append(TurnFinished(turn=turn))
            strategy.tell(turn)


def _next(
    strategy: Strategy,
    log: EventLog,
    held: deque[Ask],
    max_concurrency: int,
    running: set[Future[Turn]],
) -> bool:
    """Have an ask at hand, if there is one: of an earlier time, or a new one."""
    if not held:
        limit = max_concurrency - len(running)
        asks = strategy.ask(limit)
        if asks:
            log.append(RequestsIssued(limit=limit, asks=tuple(asks)))
            held.extend(asks)
    return bool(held)
