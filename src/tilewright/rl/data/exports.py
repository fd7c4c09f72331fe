"""Runs and problems as rows to learn from: chosen, not repeated, held against benchmarks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from tilewright.errors import ConfigError, ProblemError
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.prompts import opening
from tilewright.loop.table_input import RowWriter
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.event_log import EVENTS
from tilewright.records.events import EvalSummary, Turn
from tilewright.rl.data import drkernel
from tilewright.rl.data.contamination import Benchmark, Match, reference_digest
from tilewright.rl.data.conversations import SFT_SHAPE, TURN_SHAPE, sft_rows, turn_row
from tilewright.rl.data.logs import RunLog
from tilewright.rl.data.programs import SAME, Seen

__all__ = [
    "FORMATS",
    "OF_TURNS",
    "Choice",
    "Exported",
    "Plan",
    "by_kind",
    "export",
    "held_out_path",
    "matches_path",
]

Row = dict[str, Any]
Format = Literal["turns", "sft", "rl", "drkernel-coldstart", "drkernel-rl", "drkernel-validation"]
RL_SHAPE: Row = {
    "id": "string",
    "prompt": [{"role": "string", "content": "string"}],
    "problem": "string",
}
FORMATS: dict[str, Row] = {
    "turns": TURN_SHAPE,
    "sft": SFT_SHAPE,
    "rl": RL_SHAPE,
    "drkernel-coldstart": drkernel.COLDSTART_SHAPE,
    "drkernel-rl": drkernel.RL_SHAPE,
    "drkernel-validation": drkernel.VALIDATION_SHAPE,
}
OF_TURNS = ("turns", "sft", "drkernel-coldstart")


@dataclass(frozen=True)
class Choice:
    """Which turns are learned from; what is left empty chooses nothing."""

    verdicts: tuple[str, ...] = ()
    least_speedup: float | None = None
    """Threshold for the lower end of the interval, or for the speed-up without an interval."""
    with_labels: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Labels and findings, by name."""

    def takes(self, turn: Turn) -> bool:
        """Tell whether a turn is chosen, by its first judgement."""
        if self == Choice():
            return True
        item = turn.judgements[0] if turn.judgements else None
        if item is None or (self.verdicts and item.verdict not in self.verdicts):
            return False
        said = {*item.labels, *item.findings}
        if not set(self.with_labels) <= said or said & set(self.without):
            return False
        return self.least_speedup is None or _sure(item) >= self.least_speedup


def _sure(item: EvalSummary) -> float:
    found = item.low if item.low is not None else item.speedup
    return found if found is not None and item.verdict == "correct" else 0.0


@dataclass(frozen=True)
class Plan:
    """What is exported, and where to."""

    sources: tuple[str, ...]
    """Run folders; for formats of problems also addresses of problems."""
    target: Path
    format: Format = "turns"
    choice: Choice = field(default_factory=Choice)
    dedupe: Literal["off", "exact", "near"] = "off"
    against: tuple[str, ...] = ()
    """Addresses of benchmarks whose problems must not be in it."""
    held_out: float = 0.0
    """Share of the problems whose rows go into a file of their own."""
    seed: int = 0
    """Decides which problems these are."""
    language: str | None = None
    """In which candidates are to be written, for prompts to problems at an address."""
    home: Path = Path()


@dataclass
class Exported:
    """What came of it."""

    rows: int = 0
    held_out: int = 0
    turns: int = 0
    """Read."""
    not_chosen: int = 0
    repeated: int = 0
    nearly_repeated: int = 0
    contaminated: int = 0
    """Turns, or problems, that were left out since a benchmark has their problem."""
    left_out: int = 0
    """What could not be read or does not fit the format; each was named."""
    matches: list[Match] = field(default_factory=list)


def export(
    plan: Plan,
    left_out: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write rows; return how many, and what was left out for which reason.

    Raises:
        ConfigError: it cannot be written, or a package is missing.
        ProblemError: an address of problems is wrong.
        RecordError: a source is no run.
    """
    return _Export(plan, left_out, progress).run()


class _Export:
    """Lifetime: one export."""

    def __init__(
        self, plan: Plan, left_out: Callable[[str], None], progress: Callable[[int], None]
    ) -> None:
        self._plan, self._progress = plan, progress
        self._say = left_out
        self._done = Exported()
        self._seen = Seen(SAME if plan.dedupe == "near" else None)
        found = [item for name in plan.against for item in find_problems(name, plan.home)]
        self._benchmark = Benchmark(found) if found else None
        self._clean: dict[str, bool] = {}
        self._group: dict[str, str] = {}

    def _left_out(self, what: str) -> None:
        self._done.left_out += 1
        self._say(what)

    def run(self) -> Exported:
        plan, shape = self._plan, FORMATS[self._plan.format]
        with ExitStack() as stack:
            kept = stack.enter_context(RowWriter(plan.target, shape, self._left_out))
            aside = None
            if plan.held_out:
                aside = stack.enter_context(
                    RowWriter(held_out_path(plan.target), shape, self._left_out)
                )
            for problem, row in self._rows():
                writer = aside if aside is not None and self._is_held_out(problem) else kept
                writer.write(row, str(row.get("id", "")))
        done = self._done
        done.rows, done.held_out = kept.count, aside.count if aside is not None else 0
        done.repeated, done.nearly_repeated = self._seen.equal, self._seen.alike
        if plan.against:
            _write_matches(matches_path(plan.target), done.matches)
        return done

    def _rows(self) -> Iterator[tuple[Problem, Row]]:
        for source in self._plan.sources:
            if (Path(source) / EVENTS).is_file() or self._plan.format in OF_TURNS:
                with closing(RunLog(Path(source), self._left_out)) as log:
                    yield from self._of_run(log)
            else:
                for problem in find_problems(source, self._plan.home):
                    yield from self._of_problem(problem, self._plan.language, {})

    def _of_run(self, log: RunLog) -> Iterator[tuple[Problem, Row]]:
        if self._plan.format == "turns":
            for turn in log.turns():
                problem = log.problem(turn.ask.problem)
                if problem is not None and self._learned(log, [turn], problem):
                    yield problem, turn_row(log, turn, problem)
        elif self._plan.format == "sft":
            for turns in log.trajectories():
                problem = log.problem(turns[0].ask.problem)
                if problem is not None:
                    learned = self._learned(log, turns, problem)
                    yield from ((problem, row) for row in sft_rows(log, turns, problem, learned))
        elif self._plan.format == "drkernel-coldstart":
            yield from self._coldstart(log)
        else:
            for problem, rest in _zipped(log):
                yield from self._of_problem(problem, log.begun.language, rest)

    def _coldstart(self, log: RunLog) -> Iterator[tuple[Problem, Row]]:
        for turns, rest in zip_longest(log.trajectories(), _beside(log), fillvalue=None):
            if turns is None:
                return
            last = turns[-1]
            problem = log.problem(last.ask.problem)
            if problem is None or last.ask.id not in self._learned(log, turns, problem):
                continue
            chain = [*log.shown(last), last]
            named = rest is not None and (rest.get("problem"), rest.get("sample")) == (
                last.ask.problem,
                last.ask.sample,
            )
            prompt = turn_row(log, last, problem)["prompt"]
            try:
                more = rest["row"] if rest is not None and named else {}
                yield problem, drkernel.coldstart_row(problem, prompt, chain, more)
            except ProblemError as error:
                self._left_out(str(error))

    def _of_problem(
        self, problem: Problem, language: str | None, rest: Row
    ) -> Iterator[tuple[Problem, Row]]:
        self._done.turns += 1
        self._progress(self._done.turns)
        asked = rest.get("prompt") or [{"role": "user", "content": opening(problem, language)}]
        if not self._is_clean(problem, asked[0]["content"]):
            self._done.contaminated += 1
            return
        if self._plan.dedupe != "off" and not self._seen.is_new("", problem.source.text):
            return
        if self._plan.format == "rl":
            yield problem, {"id": problem.id, "prompt": asked, "problem": problem.to_json()}
            return
        kind = self._plan.format
        assert kind == "drkernel-rl" or kind == "drkernel-validation"
        try:
            yield problem, drkernel.prompt_row(problem, language, rest, kind)
        except ProblemError as error:
            self._left_out(str(error))

    def _learned(self, log: RunLog, turns: Sequence[Turn], problem: Problem) -> set[str]:
        """Return the ids of those turns that are chosen, new, and of no benchmark's problem."""
        self._done.turns += len(turns)
        self._progress(self._done.turns)
        chosen = [turn for turn in turns if self._plan.choice.takes(turn)]
        if self._plan.format != "turns" and not self._plan.choice.verdicts:
            # Nobody knows what would be learned from it.
            chosen = [turn for turn in chosen if not _is_unjudged(turn)]
        self._done.not_chosen += len(turns) - len(chosen)
        if chosen and not self._is_clean(problem, _asked(turns, problem, log.begun.language)):
            self._done.contaminated += len(chosen)
            return set()
        return {turn.ask.id for turn in chosen if self._is_new(turn, problem)}

    def _is_new(self, turn: Turn, problem: Problem) -> bool:
        if self._plan.dedupe == "off" or turn.reply is None:
            return True
        files = parse_reply(turn.reply.text, problem.entry).files
        text = "\n".join(file.text for file in files) or turn.reply.text
        return self._seen.is_new(self._named(problem), text)

    def _named(self, problem: Problem) -> str:
        """Return what a problem and others with its reference have in common."""
        if problem.id not in self._group:
            self._group[problem.id] = reference_digest(problem.source.text)[:16]
        return self._group[problem.id]

    def _is_clean(self, problem: Problem, prompt: str) -> bool:
        if self._benchmark is None:
            return True
        if problem.id not in self._clean:
            found = self._benchmark.matches(problem, prompt)
            self._done.matches += found
            self._clean[problem.id] = not found
        return self._clean[problem.id]

    def _is_held_out(self, problem: Problem) -> bool:
        """Decide by the reference, so that two names of one problem are on one side."""
        name = f"seed={self._plan.seed}|problem={self._named(problem)}"
        draw = int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) / 2**64
        return draw < self._plan.held_out


def _is_unjudged(turn: Turn) -> bool:
    return any(item.verdict == "unjudged" for item in turn.judgements)


def _asked(turns: Sequence[Turn], problem: Problem, language: str | None) -> str:
    return turns[0].ask.prompt_override or opening(problem, language)


def _beside(log: RunLog) -> Iterator[Row | None]:
    """Yield what imported rows said beside their turns, in their order; nothing for other runs."""
    path = drkernel.beside(log.folder)
    if not path.is_file():
        return
    with open(path, encoding="utf-8") as file:
        next(file, None)
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                yield None
            else:
                yield row if isinstance(row, dict) else None


def _zipped(log: RunLog) -> Iterator[tuple[Problem, Row]]:
    """Yield the problems of a run, each with what its imported row said."""
    if not drkernel.beside(log.folder).is_file() or log.begun.name == "drkernel-coldstart":
        yield from ((problem, {}) for problem in log.problems())
        return
    for rest in _beside(log):
        problem = log.problem(str(rest.get("problem"))) if rest is not None else None
        if problem is not None and rest is not None:
            yield problem, rest["row"]


def held_out_path(target: Path) -> Path:
    """Return where the rows of held-out problems go."""
    return target.with_name(f"{target.stem}.held-out{target.suffix}")


def matches_path(target: Path) -> Path:
    """Return where it is said what looks like a benchmark's problem."""
    return target.with_name(f"{target.stem}.matches.jsonl")


def _write_matches(path: Path, matches: Sequence[Match]) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(match.__dict__)}\n" for match in matches)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


def by_kind(matches: Sequence[Match]) -> dict[str, int]:
    """Return how many matches there are of each kind."""
    return dict(Counter(match.how for match in matches))
