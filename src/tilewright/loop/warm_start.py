"""Warm start: the best candidates of earlier runs are the first proposals of a new one.

No verdict is carried over: another device, version or baseline would make it wrong. A stored
candidate takes the place of a model's reply, so that it is judged as any other proposal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.errors import ConfigError, RecordError, writing
from tilewright.loop.budget import Usage
from tilewright.loop.policies.base import Message, Policy
from tilewright.loop.policies.choosing import ScoringPolicy
from tilewright.loop.prompts.shown_programs import TAGS, fenced
from tilewright.records import Problem
from tilewright.records.base import Record
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, Reply, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import read_report

SEEDS = "seeds.jsonl"


class StoredCandidate(Record):
    """The main file of a candidate of an earlier run."""

    problem: str
    """Id of its problem in the new run."""
    code: str
    language: str
    origin: str
    """Name of the earlier run's folder, and of the request that wrote it."""


def stored_candidates(
    runs: Sequence[Path], problems: Sequence[Problem], most: int
) -> list[StoredCandidate]:
    """Return the `most` fastest correct candidates of each problem in earlier runs.

    A problem is the same if its digest is: its source, its cases and its rules.

    Raises:
        ConfigError: a folder holds no run that can be read.
    """
    by_digest = {problem.digest(): problem.id for problem in problems}
    found: dict[str, list[tuple[float, StoredCandidate]]] = {}
    for folder in runs:
        for turn in _turns(folder):
            item = _candidate(folder, turn, by_digest)
            if item is not None:
                found.setdefault(item[1].problem, []).append(item)
    chosen = []
    for items in found.values():
        ranked = sorted(items, key=lambda item: -item[0])
        different = {item.code: item for _, item in reversed(ranked)}
        order = dict.fromkeys(item.code for _, item in ranked)
        chosen += [different[code] for code in list(order)[:most]]
    return chosen


def _turns(folder: Path) -> list[Turn]:
    try:
        events = list(read_events(folder, left_out=lambda _: None))
    except RecordError as error:
        raise ConfigError(f"--from {folder}: it is no run: {error}") from error
    if not events or not isinstance(events[0], RunStarted):
        raise ConfigError(f"--from {folder}: it is no run: its event log has no first line")
    return [event.turn for event in events if isinstance(event, TurnFinished)]


def _candidate(
    folder: Path, turn: Turn, by_digest: Mapping[str, str]
) -> tuple[float, StoredCandidate] | None:
    judgement = turn.judgements[0] if turn.judgements else None
    if judgement is None or not judgement.speedup or not judgement.report or turn.repeats:
        return None
    try:
        request = read_report(folder / judgement.report).request
    except RecordError:
        # The report of one candidate is damaged; the others are still of use.
        return None
    problem, candidate = by_digest.get(request.problem.digest()), request.candidate
    if problem is None or len(candidate.files) != 1:
        return None
    origin = f"{folder.name} {turn.ask.id}"
    text, language = candidate.files[0].text, candidate.language
    stored = StoredCandidate(problem=problem, code=text, language=language, origin=origin)
    return judgement.speedup, stored


def write_seeds(folder: Path, seeds: Sequence[StoredCandidate]) -> None:
    """Store the seeds of a run in its folder, so that it can be resumed without the others."""
    path = folder / SEEDS
    with writing(path):
        path.write_text("".join(f"{item.to_json()}\n" for item in seeds), encoding="utf-8")


def read_seeds(folder: Path) -> list[StoredCandidate]:
    """Return the seeds of a run.

    Raises:
        RecordError: they cannot be read.
    """
    path = folder / SEEDS
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    return [StoredCandidate.from_json(line) for line in lines if line]


class WarmStart:
    """A policy whose first replies of each trajectory are stored candidates. Lifetime: one run."""

    def __init__(self, policy: Policy, seeds: Sequence[StoredCandidate]) -> None:
        self.name = policy.name
        self._policy = policy
        self._seeds: dict[str, list[StoredCandidate]] = {}
        for item in seeds:
            self._seeds.setdefault(item.problem, []).append(item)

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:
        """Return the stored candidate at the place of the request's turn, else the model's reply.

        Raises:
            PolicyError: the model cannot answer.
        """
        seeds = self._seeds.get(ask.problem, [])
        if ask.role in ("propose", "draft") and ask.turn < len(seeds) and ask.form != "patch":
            seed = seeds[ask.turn]
            tag = TAGS.get(seed.language, "python")
            return Reply(text=fenced(seed.code, tag), model=f"from: {seed.origin}")
        return self._policy.answer(messages, ask)

    def max_cost(self, prompt_tokens: int) -> Usage:
        return self._policy.max_cost(prompt_tokens)

    def close(self) -> None:
        self._policy.close()


class WarmStartScorer(WarmStart):
    """The same for a model that states log-probabilities of choices. Lifetime: one run."""

    def __init__(self, policy: ScoringPolicy, seeds: Sequence[StoredCandidate]) -> None:
        super().__init__(policy, seeds)
        self._scorer = policy

    def score_choices(
        self, messages: Sequence[Message], choices: Sequence[str]
    ) -> tuple[tuple[float, ...], ...]:
        """Return the model's log-probabilities: a stored candidate is no choice."""
        return self._scorer.score_choices(messages, choices)


def with_seeds(policy: Policy, seeds: Sequence[StoredCandidate]) -> Policy:
    """Return the policy that answers with stored candidates first, and can do what it could."""
    if not seeds:
        return policy
    if isinstance(policy, ScoringPolicy):
        return WarmStartScorer(policy, seeds)
    return WarmStart(policy, seeds)
