"""Exemplars: correct programs of earlier batches that a prompt shows, slowest first.

Source: CUDA-L1 (arXiv 2507.14111), section on contrastive exemplars. The programs are those of the
same training, so the log alone gives them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tilewright.loop.archives.buckets import Buckets, best, contrasting, uniform
from tilewright.loop.random_values import chooser
from tilewright.records.events import Turn
from tilewright.rl.logged_rewards import batch_of
from tilewright.rl.presets import ExemplarSection
from tilewright.rl.prompt_contexts import PromptContext
from tilewright.rl.rollouts import verdict_of


class ExemplarArchive:
    """The correct programs of a training by problem. Lifetime: one session of a run.

    A program that several replies have counts once, with its first verdict.
    """

    def __init__(self, section: ExemplarSection, seed: int, turns: Iterable[Turn] = ()) -> None:
        """`turns` are those of earlier sessions; they count from the batch after their own on."""
        self._section, self._seed = section, seed
        order = sorted(turns, key=lambda turn: (batch_of(turn), turn.ask.sample, turn.ask.turn))
        self._waiting = deque(order)
        self._kept: dict[str, Buckets] = {}
        self._turns: dict[str, Turn] = {}
        self._known: set[tuple[str, str]] = set()

    def add(self, turns: Iterable[Turn]) -> None:
        """Admit the correct programs of a finished batch."""
        for turn in turns:
            key, score = (turn.ask.problem, turn.source), _speedup(turn)
            if score is None or key in self._known:
                continue
            self._known.add(key)
            self._turns[turn.ask.id] = turn
            kept = self._kept.setdefault(turn.ask.problem, Buckets(self._section.delta))
            kept.put(turn.ask.id, score)

    def context(self, group: str, problem: str) -> PromptContext:
        """Return the exemplars of a group of rollouts; it may have none.

        Only programs of batches before that of the group count.
        """
        batch = group.partition("/")[0]
        while self._waiting and batch_of(self._waiting[0]) < batch:
            self.add([self._waiting.popleft()])
        kept = self._kept.get(problem)
        names = self._chosen(group, kept) if kept is not None else ()
        shown = kept.worst_first(names) if kept is not None else ()
        return PromptContext(
            id=group, problem=problem, shown=tuple(self._turns[name] for name in shown)
        )

    def _chosen(self, group: str, kept: Buckets) -> tuple[str, ...]:
        section, draw = self._section, chooser(self._seed, group, "exemplars")
        if section.selection == "best":
            return best(kept, section.count)
        if section.selection == "random":
            return uniform(kept, section.count, draw)
        # Two programs of one bucket show no contrast.
        count = min(section.count, len(kept.buckets()))
        return contrasting(kept, count, section.tau, draw)


def _speedup(turn: Turn) -> float | None:
    """Return the speed-up of a correct program; `None`: it is not correct, or was not timed."""
    verdict = verdict_of(turn)
    if verdict is None or verdict.verdict != "correct" or not turn.source:
        return None
    return verdict.speedup if verdict.speedup and verdict.speedup > 0 else None
