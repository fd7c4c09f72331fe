"""The world `book`: verdicts of programs from a store, and live ones for programs that it lacks.

A reply is brought into canonical text before it is looked up, so equal programs have one verdict. A
program that the store lacks is evaluated and added. Where nothing can evaluate it, the run stops.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tilewright._version import __version__
from tilewright.config import Config
from tilewright.errors import InfrastructureError, writing
from tilewright.evaluator.devices.devices import find_device
from tilewright.executors.base import Executor
from tilewright.families.nano.problem_files import reference_text
from tilewright.families.nano.program_text import canonical
from tilewright.languages.reply_parser import parse_reply
from tilewright.loop.answer_evaluator import AnswerEvaluator, OnEvent, open_evaluator
from tilewright.loop.candidate_text import code_of
from tilewright.loop.policies.base import Message
from tilewright.loop.prompts.material import Material
from tilewright.loop.rollout_environment import judged, unusable
from tilewright.problems.imported_sets import find_problems
from tilewright.records import Problem, SourceFile
from tilewright.records.base import digest_text
from tilewright.records.events import Ask, EvalSummary, Reply, Turn
from tilewright.rl.verdict_store import StoreKey, VerdictStore, agreeing, chosen

EVALUATIONS = 2
"""Evaluations of a correct program, in new processes: one timing alone could be fitted."""
MISSING = "missing"
"""Folder, in that of the run, of programs that the store lacks."""
NOT_IN_STORE = "not_in_store"
"""Label of the verdict of a program that the store lacked when the reply came."""
MAX_FEEDBACK_CHARS = 80
"""Most characters of a feedback, and so most of its tokens: three turns fit into 1,024 tokens."""


def off_store_share(turns: Iterable[Turn | None]) -> float | None:
    """Return the share of programs that the store lacked; `None`: no turn has a program."""
    labels = [turn.judgements[0].labels for turn in turns if turn and turn.source]
    return sum(NOT_IN_STORE in found for found in labels) / len(labels) if labels else None


class ProgramEvaluator(Protocol):
    """Evaluates programs that a store lacks. Lifetime: until `close`."""

    def evaluations(self, problem: Problem, code: str) -> tuple[EvalSummary, ...]:
        """Return `EVALUATIONS` evaluations of a correct program, and one of any other."""

    def stop(self) -> None:
        """Abort the evaluation under way."""

    def close(self) -> None:
        """Release all resources."""


class MissingVerdictError(InfrastructureError):
    """The store has no verdict of a program, and nothing here can evaluate it."""


@dataclass(frozen=True)
class LookUps:
    """How many replies were looked up, and how many the store lacked."""

    replies: int = 0
    missing: int = 0


class BookWorld:
    """Judges replies by a store of verdicts; threads may share it. Lifetime: one run."""

    def __init__(
        self,
        settings: Config,
        store: VerdictStore,
        folder: Path,
        live: ProgramEvaluator | None = None,
    ) -> None:
        self.device = store.key.device
        self.found = LookUps()
        self._settings, self._store, self._folder, self._live = settings, store, folder, live
        self._lock = threading.Lock()

    def problems(self, address: str) -> list[Problem]:
        """Return the problems at an address, or raise `ProblemError`."""
        return find_problems(address, self._settings.home)

    def prompt(self, material: Material) -> tuple[Message, ...]:
        """Return the messages that ask for a program: the reference, programs and feedback."""
        return family_messages(material.problem, material.shown)

    def draft(
        self,
        ask: Ask,
        problem: Problem,
        reply: Reply,
        prompt: str = "",
        base: tuple[SourceFile, ...] = (),  # noqa: ARG002 - one signature
    ) -> Turn:
        """Return the turn of a reply that is not judged yet, with its code in canonical text."""
        parsed = parse_reply(reply.text, problem.entry)
        # A reply without a program is one that does not build.
        code = canonical(parsed.files[0].text) if parsed.files else ""
        refused = "" if code else parsed.reason
        source = digest_text(code) if code else ""
        return Turn(ask=ask, source=source, prompt=prompt, reply=reply, code=code, refused=refused)

    def evaluate(self, draft: Turn, problem: Problem) -> Turn:
        """Judge a draft by the store; evaluate and store a program that it lacks.

        Raises:
            MissingVerdictError: nothing here can evaluate it; its text is in the run folder.
        """
        code = draft.code
        if draft.refused or not code:
            summary = unusable(self._store.key.protocol, problem, draft.refused)
        else:
            summary = self._summary(draft.ask, problem, code)
        checks = self._settings.reward.checks
        said = feedback_of(summary, checks=checks)
        return draft.model_copy(update={"judgements": (summary,), "feedback": said})

    def _summary(self, ask: Ask, problem: Problem, code: str) -> EvalSummary:
        known = self._store.evaluations(problem, code)
        with self._lock:
            self.found = LookUps(self.found.replies + 1, self.found.missing + (not known))
            if known:
                return chosen(known, ask.id)
            # A program that another turn evaluated meanwhile is there now.
            known = self._store.evaluations(problem, code)
            found = chosen(known or self._evaluated(problem, code), ask.id)
        return found.model_copy(update={"labels": (*found.labels, NOT_IN_STORE)})

    def _evaluated(self, problem: Problem, code: str) -> tuple[EvalSummary, ...]:
        """Evaluate a program alone, and store its verdicts; an unjudged one stays out.

        If its evaluations differ, only those of the worst verdict count (`agreeing`).
        """
        if self._live is None:
            path = self._folder / MISSING / f"{digest_text(code)[:16]}.py"
            with writing(path):
                path.parent.mkdir(exist_ok=True)
                path.write_text(code, encoding="utf-8")
            command = f"tilewright data verdicts {problem.id} --to STORE --program {path}"
            raise MissingVerdictError(
                f"{self._store.path} has no verdict of program {path.stem} for {problem.id}, and "
                f"no device here can evaluate it. Where a GPU is: {command}; then resume the run"
            )
        made = agreeing(self._live.evaluations(problem, code))
        for summary in made:
            if summary.verdict != "unjudged":
                self._store.add(problem, code, summary)
        if not self._store.key.is_synthetic:
            # At once: after a kill, these verdicts would be evaluated again.
            self._store.save()
        return made

    def recall(self, turns: Iterable[Turn], problems: Iterable[Problem]) -> None:
        """Add the programs that the store lacked in earlier sessions of this run.

        A killed session may not have saved its verdicts, and no program is evaluated again.
        """
        known = {problem.id: problem for problem in problems}
        for turn in turns:
            found, problem = turn.judgements[0], known[turn.ask.problem]
            if NOT_IN_STORE not in found.labels or found.verdict == "unjudged":
                continue
            if not self._store.evaluations(problem, turn.code):
                labels = tuple(label for label in found.labels if label != NOT_IN_STORE)
                self._store.add(problem, turn.code, found.model_copy(update={"labels": labels}))

    def record_refusal(self, ask: Ask, prompt: str, reason: str) -> Turn:
        """Return the turn of an ask that its policy refused."""
        summary = EvalSummary(
            protocol=self._store.key.protocol, verdict="unjudged", reason=reason[:400]
        )
        return Turn(ask=ask, prompt=prompt, judgements=(summary,))

    def stop(self) -> None:
        """Abort the evaluation under way."""
        if self._live is not None:
            self._live.stop()

    def close(self) -> None:
        """Write the verdicts that were added."""
        if self._live is None:
            return
        self._live.close()
        if self.found.missing:
            self._store.save()


def family_messages(problem: Problem, shown: Sequence[Turn]) -> tuple[Message, ...]:
    """Return the messages that ask for a program: the reference, programs and feedback."""
    messages = [Message(role="user", text=reference_text(problem.source.text))]
    for turn in shown:
        messages.append(Message(role="assistant", text=code_of(turn)))
        messages.append(Message(role="user", text=turn.feedback))
    return tuple(messages)


def open_book(settings: Config, folder: Path, on_event: OnEvent, path: Path) -> BookWorld:
    """Return the world of a store; it evaluates live if `eval.device` is the store's device.

    Raises:
        ConfigError: the store is not there, or it holds verdicts under another key.
        RecordError: the store is damaged.
    """
    found = VerdictStore.read(path)
    section = settings.eval
    here = find_device(section.device).model if section.device != "cpu" else found.key.device
    wanted = StoreKey(
        protocol=section.protocol, rules=section.rules, evaluator=__version__, device=here
    )
    store = VerdictStore.read(path, wanted)
    live = None if section.device == "cpu" else LiveEvaluator(settings, folder, on_event)
    return BookWorld(settings, store, folder, live)


class LiveEvaluator:
    """Evaluates programs on the device, `workers` at the same time. Lifetime: one run."""

    def __init__(self, settings: Config, folder: Path, on_event: OnEvent, workers: int = 1) -> None:
        self._settings, self._folder, self._on_event = settings, folder, on_event
        self._workers, self._lock = workers, threading.Lock()
        self._opened: tuple[Executor, AnswerEvaluator] | None = None

    def evaluations(self, problem: Problem, code: str) -> tuple[EvalSummary, ...]:
        evaluator = self._evaluator()
        files, made = (SourceFile(path="candidate.py", text=code),), list[EvalSummary]()
        while len(made) < EVALUATIONS and all(item.verdict == "correct" for item in made):
            # A request of its own for each evaluation, so that none takes the report of another.
            ask = Ask(id=f"{digest_text(code)[:16]}.{len(made)}", problem=problem.id)
            made.append(judged(evaluator, ask, problem, files, self._settings)[0])
        return tuple(made)

    def _evaluator(self) -> AnswerEvaluator:
        with self._lock:
            if self._opened is None:
                # Most runs find every program in the store.
                self._opened = open_evaluator(
                    self._settings, self._folder, self._on_event, self._workers
                )
            return self._opened[1]

    def stop(self) -> None:
        if self._opened is not None:
            self._opened[1].stop()
            self._opened[0].kill()

    def close(self) -> None:
        if self._opened is not None:
            self._opened[0].close()


def feedback_of(summary: EvalSummary, *, checks: bool = True) -> str:
    """Return one line about a verdict, of at most `MAX_FEEDBACK_CHARS` characters.

    Without checks, a rejected program is spoken of as what its outputs show: a correct one.
    """
    if summary.verdict == "rejected" and not checks and summary.unchecked is not None:
        return f"ok {summary.unchecked:.2f}x"
    if summary.verdict == "correct":
        interval = "" if summary.low is None else f" [{summary.low:.2f}, {summary.high:.2f}]"
        covered = "" if summary.coverage is None else f" cov {summary.coverage:.2f}"
        timed = "" if summary.speedup is None else f" {summary.speedup:.2f}x"
        return f"ok{timed}{interval}{covered}"
    words = {"incorrect": "wrong", "failed": "error", "unjudged": "not judged"}
    reason = " ".join(summary.reason.split())
    return f"{words.get(summary.verdict, summary.verdict)}: {reason}"[:MAX_FEEDBACK_CHARS]
