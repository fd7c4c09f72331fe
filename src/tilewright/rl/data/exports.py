"""Runs and problems as rows of a data set: selected, without repetitions, and decontaminated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from tilewright.errors import writing
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.prompts.opening import opening
from tilewright.loop.table_input import RowWriter
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem
from tilewright.records.event_log import EVENTS
from tilewright.records.events import Turn
from tilewright.rl.data import drkernel_rows
from tilewright.rl.data.action_rows import ACTION_SHAPE, action_rows
from tilewright.rl.data.card import LICENCE, licensed
from tilewright.rl.data.contamination import Benchmark, Match, reference_digest
from tilewright.rl.data.conversations import MESSAGES, SFT_SHAPE, TURN_SHAPE, sft_rows, turn_row
from tilewright.rl.data.logs import RunLog
from tilewright.rl.data.programs import MIN_SIMILARITY, SeenPrograms
from tilewright.rl.data.search_rows import GROUP_SHAPE, STEP_SHAPE, group_rows, step_rows
from tilewright.rl.data.step_contexts import (
    CONTEXT_SHAPE,
    STEP_SFT_SHAPE,
    context_rows,
    step_sft_rows,
)

Row = dict[str, Any]
Format = Literal[
    "turns",
    "sft",
    "rl",
    "steps",
    "step-sft",
    "groups",
    "actions",
    "contexts",
    "drkernel-coldstart",
    "drkernel-rl",
    "drkernel-validation",
]
FORMATS: dict[str, Row] = {
    "turns": TURN_SHAPE,
    "sft": SFT_SHAPE,
    "rl": {"id": "string", "prompt": MESSAGES, "problem": "string"},
    "steps": STEP_SHAPE,
    "step-sft": STEP_SFT_SHAPE,
    "groups": GROUP_SHAPE,
    "actions": ACTION_SHAPE,
    "contexts": CONTEXT_SHAPE,
    "drkernel-coldstart": drkernel_rows.COLDSTART_SHAPE,
    "drkernel-rl": drkernel_rows.RL_SHAPE,
    "drkernel-validation": drkernel_rows.VALIDATION_SHAPE,
}
OF_SEARCHES = {
    "steps": step_rows,
    "step-sft": step_sft_rows,
    "groups": group_rows,
    "actions": action_rows,
    "contexts": context_rows,
}
"""The formats about a search as a whole."""
OF_TURNS = ("turns", "sft", *OF_SEARCHES, "drkernel-coldstart")
"""The formats whose rows hold turns; the other formats hold problems."""


@dataclass(frozen=True)
class Selection:
    """The turns that are exported, by their first judgement; an empty field selects all."""

    verdicts: tuple[str, ...] = ()
    least_speedup: float | None = None
    """Threshold for the lower end of the interval, or for the speed-up without an interval."""
    with_labels: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    """Labels and findings, by name."""

    def takes(self, turn: Turn) -> bool:
        """Tell whether a turn is selected."""
        if self == Selection():
            return True
        item = turn.judgements[0] if turn.judgements else None
        if item is None or (self.verdicts and item.verdict not in self.verdicts):
            return False
        names = {*item.labels, *item.findings}
        if not set(self.with_labels) <= names or names & set(self.without):
            return False
        speedup = item.low if item.low is not None else item.speedup
        surely = speedup if speedup is not None and item.verdict == "correct" else 0.0
        return self.least_speedup is None or surely >= self.least_speedup


@dataclass(frozen=True)
class ExportPlan:
    """The sources, the target and the settings of an export."""

    sources: tuple[str, ...]
    """Run folders; for formats of problems also addresses of problems."""
    target: Path
    format: Format = "turns"
    choice: Selection = field(default_factory=Selection)
    dedupe: Literal["off", "exact", "near"] = "off"
    against: tuple[str, ...] = ()
    """Addresses of benchmarks whose problems are left out."""
    held_out: float = 0.0
    """Share of the problems whose rows go into a separate file."""
    seed: int = 0
    """Seed that selects those problems."""
    language: str | None = None
    """Language of the candidates, in prompts for problems at an address."""
    home: Path = Path()
    card: bool = False
    """Whether the rows name licences, and leave out sources that a licence restricts."""


@dataclass
class Exported:
    """The numbers of an export."""

    rows: int = 0
    held_out: int = 0
    turns: int = 0
    """Turns, or problems, that were read."""
    not_chosen: int = 0
    repeated: int = 0
    nearly_repeated: int = 0
    contaminated: int = 0
    """Turns, or problems, that were left out because a benchmark has their problem."""
    left_out: int = 0
    """Items that cannot be read or do not fit the format; each was named."""
    matches: list[Match] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    """Rows by verdict; rows of problems have none."""
    licences: Counter[str] = field(default_factory=Counter)
    """Rows by the licence of their problem; counted for a card."""


def export(
    plan: ExportPlan,
    left_out: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
) -> Exported:
    """Write rows; tell `left_out` each item that is not usable, and `progress` the items read.

    Raises:
        ConfigError: the target cannot be written, or a package is missing.
        ProblemError: an address of problems is wrong.
        RecordError: a source is no run.
    """
    made = _Export(plan, left_out, progress)
    done, shape = made.done, FORMATS[plan.format]
    if plan.card:
        shape = {**shape, LICENCE: "string"}
    with ExitStack() as stack:
        kept = aside = stack.enter_context(RowWriter(plan.target, shape, made.leave_out))
        if plan.held_out:
            held_out = RowWriter(held_out_path(plan.target), shape, made.leave_out)
            aside = stack.enter_context(held_out)
        for problem, row in made.rows():
            writer = aside if made.is_held_out(problem) else kept
            whole = licensed(row, problem) if plan.card else row
            writer.write(whole, str(row.get("id", "")))
            done.licences[problem.licence] += 1
            if row.get("verdict"):
                done.verdicts[str(row["verdict"])] += 1
    done.rows, done.held_out = kept.count, aside.count if plan.held_out else 0
    done.repeated, done.nearly_repeated = made.seen.equal, made.seen.alike
    if plan.against:
        path = matches_path(plan.target)
        lines = [f"{json.dumps(match.__dict__)}\n" for match in done.matches]
        with writing(path):
            path.write_text("".join(lines), encoding="utf-8")
    return done


class _Export:
    """Lifetime: one export."""

    def __init__(
        self, plan: ExportPlan, left_out: Callable[[str], None], progress: Callable[[int], None]
    ) -> None:
        self._plan, self._progress, self._name = plan, progress, left_out
        self.done = Exported()
        self.seen = SeenPrograms(MIN_SIMILARITY if plan.dedupe == "near" else None)
        found = [item for name in plan.against for item in find_problems(name, plan.home)]
        self._benchmark = Benchmark(found) if found else None
        self._clean: dict[str, bool] = {}

    def leave_out(self, what: str) -> None:
        """Count an item that cannot be read or does not fit, and name it."""
        self.done.left_out += 1
        self._name(what)

    def _count(self, items: int) -> None:
        self.done.turns += items
        self._progress(self.done.turns)

    def rows(self) -> Iterator[tuple[Problem, Row]]:
        for source in self._plan.sources:
            if (Path(source) / EVENTS).is_file() or self._plan.format in OF_TURNS:
                with closing(RunLog(Path(source), self.leave_out)) as log:
                    yield from self._of_run(log)
            else:
                for problem in find_problems(source, self._plan.home):
                    yield from self._of_problem(problem, self._plan.language, {})

    def _of_run(self, log: RunLog) -> Iterator[tuple[Problem, Row]]:
        match self._plan.format:
            case "turns":
                yield from self._turns(log)
            case "sft":
                for turns in log.trajectories():
                    problem = log.problem(turns[0].ask.problem)
                    if problem is not None:
                        learned = self._learned(log, turns, problem)
                        for row in sft_rows(log, turns, problem, learned):
                            yield problem, row
            case "steps" | "step-sft" | "groups" | "actions" | "contexts" as kind:
                yield from OF_SEARCHES[kind](log, partial(self._learns, log))
            case "drkernel-coldstart":
                yield from self._coldstart(log)
            case _:
                for problem, rest in _problems_of(log):
                    yield from self._of_problem(problem, log.begun.language, rest)

    def _turns(self, log: RunLog) -> Iterator[tuple[Problem, Row]]:
        for turn in log.turns():
            problem = log.problem(turn.ask.problem)
            if problem is not None and self._learned(log, [turn], problem):
                yield problem, turn_row(log, turn, problem)

    def _coldstart(self, log: RunLog) -> Iterator[tuple[Problem, Row]]:
        for turns, rest in zip_longest(log.trajectories(), drkernel_rows.imported_rows(log.folder)):
            if turns is None:
                return
            last = turns[-1]
            problem = log.problem(last.ask.problem)
            if problem is None or last.ask.id not in self._learned(log, turns, problem):
                continue
            rest = rest or {}
            same = (rest.get("problem"), rest.get("sample")) == (last.ask.problem, last.ask.sample)
            more = rest["row"] if same else {}
            if self._is_module(problem):
                prompt, shown = turn_row(log, last, problem)["prompt"], log.shown(last)
                row = drkernel_rows.coldstart_row(problem, prompt, [*shown, last], more)
                yield problem, row

    def _of_problem(
        self, problem: Problem, language: str | None, rest: Row
    ) -> Iterator[tuple[Problem, Row]]:
        self._count(1)
        prompt = rest.get("prompt") or [{"role": "user", "content": opening(problem, language)}]
        if not self._is_clean(problem, prompt[0]["content"]):
            self.done.contaminated += 1
        elif self._plan.dedupe != "off" and not self.seen.is_new("", problem.source.text):
            pass
        elif self._plan.format == "rl":
            yield problem, {"id": problem.id, "prompt": prompt, "problem": problem.to_json()}
        elif self._is_module(problem):
            validation = self._plan.format == "drkernel-validation"
            row = drkernel_rows.prompt_row(problem, language, rest, validation=validation)
            yield problem, row

    def _is_module(self, problem: Problem) -> bool:
        """Tell whether the formats of Dr. Kernel can hold a problem; name one that they cannot."""
        if problem.kind != "module":
            self.leave_out(f"{problem.id}: the format holds problems with a class `Model` alone")
        return problem.kind == "module"

    def _learns(self, log: RunLog, turn: Turn, problem: Problem, *, fits: bool) -> bool:
        """Tell whether a turn of a search is selected, new, and of no benchmark's problem."""
        if fits:
            return bool(self._learned(log, [turn], problem))
        self._count(1)
        self.done.not_chosen += 1
        return False

    def _learned(self, log: RunLog, turns: Sequence[Turn], problem: Problem) -> set[str]:
        """Return the ids of the turns that are selected, new, and of no benchmark's problem."""
        self._count(len(turns))
        chosen = [turn for turn in turns if self._plan.choice.takes(turn)]
        if self._plan.format != "turns" and not self._plan.choice.verdicts:
            # An unjudged reply may be right or wrong, so it is no example.
            chosen = [t for t in chosen if all(i.verdict != "unjudged" for i in t.judgements)]
        self.done.not_chosen += len(turns) - len(chosen)
        prompt = turns[0].ask.prompt_override or opening(problem, log.begun.language)
        if chosen and not self._is_clean(problem, prompt):
            self.done.contaminated += len(chosen)
            return set()
        return {turn.ask.id for turn in chosen if self._is_new(turn, problem)}

    def _is_new(self, turn: Turn, problem: Problem) -> bool:
        if self._plan.dedupe == "off" or turn.reply is None or turn.choice is not None:
            return True
        files = parse_reply(turn.reply.text, problem.entry).files
        # The reply of a patch does not hold the program.
        text = turn.code or "\n".join(file.text for file in files) or turn.reply.text
        return self.seen.is_new(reference_digest(problem.source.text)[:16], text)

    def _is_clean(self, problem: Problem, prompt: str) -> bool:
        if self._benchmark is None:
            return True
        if problem.id not in self._clean:
            found = self._benchmark.matches(problem, prompt)
            self.done.matches += found
            self._clean[problem.id] = not found
        return self._clean[problem.id]

    def is_held_out(self, problem: Problem) -> bool:
        """Decide by the reference, so that all names of one problem go into the same file."""
        name = f"seed={self._plan.seed}|problem={reference_digest(problem.source.text)[:16]}"
        digest = blake2b(name.encode(), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64 < self._plan.held_out


def _problems_of(log: RunLog) -> Iterator[tuple[Problem, Row]]:
    """Yield the problems of a run, each with the other fields of its imported row."""
    imported = (log.folder / drkernel_rows.IMPORTED).is_file()
    if not imported or log.begun.name == "drkernel-coldstart":
        yield from ((problem, {}) for problem in log.problems())
        return
    for rest in drkernel_rows.imported_rows(log.folder):
        if rest is not None and (problem := log.problem(str(rest.get("problem")))):
            yield problem, rest["row"]


def held_out_path(target: Path) -> Path:
    """Return the file for the rows of held-out problems."""
    return target.with_name(f"{target.stem}.held-out{target.suffix}")


def matches_path(target: Path) -> Path:
    """Return the file that lists the matches with problems of a benchmark."""
    return target.with_name(f"{target.stem}.matches.jsonl")
