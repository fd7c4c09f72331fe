"""Turns of a search that a test judges in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from tilewright.loop.driver import Strategy
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.records.outcome import Verdict


def judged(
    ask: Ask,
    code: str,
    verdict: Verdict = "correct",
    speedup: float | None = None,
    *,
    error: float = 0.0,
    language: str = "triton",
) -> Turn:
    """Return the turn of a written program; `error` is relative to its speed-up."""
    reply = None if ask.role == "measure" else Reply(text=f"```python\n{code}\n```")
    summary = EvalSummary(
        protocol="strict",
        verdict=verdict,
        speedup=speedup,
        low=speedup and speedup * (1 - error),
        high=speedup and speedup * (1 + error),
        seconds=1.0,
    )
    source = hashlib.sha256(code.encode()).hexdigest()[:16]
    return Turn(
        ask=ask,
        reply=reply,
        language=language,
        source=source,
        code=code if reply is None else "",
        judgements=(summary,),
    )


def played(
    strategy: Strategy, play: Callable[[Ask], Turn], *, concurrency: int = 1, most: int = 1000
) -> list[Turn]:
    """Run a strategy to its end with at most `concurrency` requests; the oldest ends first."""
    turns: list[Turn] = []
    running: list[Ask] = []
    while len(turns) < most:
        running += strategy.ask(concurrency - len(running)) if len(running) < concurrency else []
        if not running:
            break
        turns.append(play(running.pop(0)))
        strategy.tell(turns[-1])
    return turns


def asks_of(turns: Sequence[Turn]) -> list[Ask]:
    """Return the requests of some turns."""
    return [turn.ask for turn in turns]
