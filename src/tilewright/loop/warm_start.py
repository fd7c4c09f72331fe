"""Warm start: the best candidates of earlier runs are the first proposals of a new one.

No verdict is carried over: another device, version or baseline would make it wrong. A stored
candidate takes the place of a model's reply, so that it is judged as any other proposal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml

from tilewright.errors import ConfigError, RecordError, writing
from tilewright.knowledge import KnowledgeModule, read_module, words_of
from tilewright.loop.budget import Usage
from tilewright.loop.candidate_store import EarlierCandidate, kept
from tilewright.loop.history import asks_for_any_program
from tilewright.loop.policies.base import Message, Policy
from tilewright.loop.policies.choosing import ScoringPolicy
from tilewright.loop.prompts.shown_programs import TAGS, fenced
from tilewright.records import EvalReport, Problem
from tilewright.records.base import Record
from tilewright.records.event_log import read_events
from tilewright.records.events import Ask, Reply, RunStarted, Turn, TurnFinished
from tilewright.records.run_folder import read_report

SEEDS = "seeds.jsonl"
HOME = "home"
"""Value of `--from` that takes the candidates below the setting `home`."""
MAX_KEYWORDS = 40
"""Words of another problem's reference that are compared with a prompt."""
MAX_REFERENCE_CHARS = 20_000
"""Characters of a reference that are stored with a candidate, for its words."""


class StoredCandidate(Record):
    """The main file of a candidate of an earlier run."""

    problem: str
    """Id of its problem in the new run."""
    code: str
    language: str
    origin: str
    """Name of the earlier run's folder, and of the request that wrote it."""


def earlier_candidates(runs: Sequence[str], home: Path) -> list[EarlierCandidate]:
    """Return the correct candidates of earlier runs, the fastest first.

    `runs` are folders, or the word `home`: the candidates that are stored there.

    Raises:
        ConfigError: a folder holds no run that can be read.
    """
    found: list[EarlierCandidate] = []
    for name in runs:
        if name == HOME:
            found += kept(home)
            continue
        folder = Path(name)
        found += filter(None, (_candidate(folder, turn) for turn in _turns(folder)))
    return sorted(found, key=lambda item: -item.speedup)


def stored_candidates(
    earlier: Sequence[EarlierCandidate], problems: Sequence[Problem], most: int
) -> list[StoredCandidate]:
    """Return the `most` fastest different candidates of each problem; others are left out.

    A problem is the same if its digest is: its source, its cases and its rules.
    """
    chosen = []
    for problem in problems:
        same = [item for item in earlier if item.problem == problem.digest()]
        different = {item.code: item for item in reversed(same)}
        order = dict.fromkeys(item.code for item in same)
        for code in list(order)[:most]:
            item = different[code]
            chosen.append(
                StoredCandidate(
                    problem=problem.id, code=code, language=item.language, origin=item.origin
                )
            )
    return chosen


def examples(
    earlier: Sequence[EarlierCandidate],
    problems: Sequence[Problem],
    most_tokens: int,
    left_out: Callable[[str], None],
) -> dict[str, KnowledgeModule]:
    """Return the fastest candidate of each other problem as a document that prompts may show.

    A candidate of more than `most_tokens` makes way for the next one, since no prompt could show
    it. `left_out` receives a line for each problem all of whose candidates are larger.
    """
    own = {problem.digest() for problem in problems}
    found: dict[str, KnowledgeModule] = {}
    larger: dict[str, str] = {}
    for item in earlier:
        name = f"examples/{item.problem[:16]}"
        if item.problem in own or name in found:
            continue
        header = {
            "title": f"A program for another problem, {item.title}",
            "keywords": sorted(words_of(item.reference))[:MAX_KEYWORDS] or [item.title],
            "languages": [item.language],
            "devices": ["any"],
            "sources": [item.origin],
        }
        text = (
            f"It was {item.speedup:.2f}x as fast as its reference{_on(item.device)}.\n\n"
            f"{fenced(item.code, TAGS.get(item.language, 'python'))}\n"
        )
        source = f"---\n{yaml.safe_dump(header)}---\n{text}"
        module = read_module(name, source, item.origin)
        if module.tokens <= most_tokens:
            found[name] = module
        else:
            larger.setdefault(
                name,
                f"the example {item.title} of {item.origin}: it has about {module.tokens} tokens, "
                f"and the limit is {most_tokens}; raise loop.document_tokens to show it",
            )
    for name, text in larger.items():
        if name not in found:
            left_out(text)
    return found


def _on(device: str) -> str:
    return f" on {device}" if device else ""


def write_examples(folder: Path, found: Mapping[str, KnowledgeModule]) -> None:
    """Store the documents in the folder of a run, so that it can be resumed without the others."""
    for name, module in found.items():
        path = folder / f"{name}.md"
        with writing(path):
            path.parent.mkdir(exist_ok=True)
            path.write_text(module.source, encoding="utf-8")


def _turns(folder: Path) -> list[Turn]:
    try:
        events = list(read_events(folder, left_out=lambda _: None))
    except RecordError as error:
        raise ConfigError(f"--from {folder}: it is no run: {error}") from error
    if not events or not isinstance(events[0], RunStarted):
        raise ConfigError(f"--from {folder}: it is no run: its event log has no first line")
    return [event.turn for event in events if isinstance(event, TurnFinished)]


def _candidate(folder: Path, turn: Turn) -> EarlierCandidate | None:
    judgement = turn.judgements[0] if turn.judgements else None
    if judgement is None or not judgement.speedup or not judgement.report or turn.repeats:
        return None
    try:
        report = read_report(folder / judgement.report)
    except RecordError:
        # The report of one candidate is damaged; the others are still of use.
        return None
    return earlier_candidate(report, f"{folder.name} {turn.ask.id}")


def earlier_candidate(report: EvalReport, origin: str) -> EarlierCandidate | None:
    """Return the candidate of a report, if it is correct, has a speed-up and one file."""
    request = report.request
    if report.verdict != "correct" or not report.speedup or len(request.candidate.files) != 1:
        return None
    return EarlierCandidate(
        problem=request.problem.digest(),
        title=request.problem.id,
        reference=request.problem.source.text[:MAX_REFERENCE_CHARS],
        code=request.candidate.files[0].text,
        language=request.candidate.language,
        speedup=report.speedup,
        device=report.environment.device_name,
        origin=origin,
    )


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
    """A policy whose first programs of each trajectory are stored candidates. Lifetime: one run.

    `places` numbers the requests of each trajectory that any program may answer, by their id. So
    a choice or a demanded change takes no candidate's place.
    """

    def __init__(
        self, policy: Policy, seeds: Sequence[StoredCandidate], places: Mapping[str, int]
    ) -> None:
        self.name = policy.name
        self._policy, self._places = policy, places
        self._seeds: dict[str, list[StoredCandidate]] = {}
        for item in seeds:
            self._seeds.setdefault(item.problem, []).append(item)

    def answer(self, messages: Sequence[Message], ask: Ask) -> Reply:
        """Return the stored candidate at the place of the request, else the model's reply.

        Raises:
            PolicyError: the model cannot answer.
        """
        seeds = self._seeds.get(ask.problem, [])
        if asks_for_any_program(ask) and (place := self._places[ask.id]) < len(seeds):
            seed = seeds[place]
            tag = TAGS.get(seed.language, "python")
            return Reply(text=fenced(seed.code, tag), model=f"from: {seed.origin}")
        return self._policy.answer(messages, ask)

    def max_cost(self, prompt_tokens: int) -> Usage:
        return self._policy.max_cost(prompt_tokens)

    def close(self) -> None:
        self._policy.close()


class WarmStartScorer(WarmStart):
    """The same for a model that states log-probabilities of choices. Lifetime: one run."""

    def __init__(
        self,
        policy: ScoringPolicy,
        seeds: Sequence[StoredCandidate],
        places: Mapping[str, int],
    ) -> None:
        super().__init__(policy, seeds, places)
        self._scorer = policy

    def score_choices(
        self, messages: Sequence[Message], choices: Sequence[str]
    ) -> tuple[tuple[float, ...], ...]:
        """Return the model's log-probabilities: a stored candidate is no choice."""
        return self._scorer.score_choices(messages, choices)


def with_seeds(
    policy: Policy, seeds: Sequence[StoredCandidate], places: Mapping[str, int]
) -> Policy:
    """Return the policy that answers with stored candidates first, and can do what it could."""
    if not seeds:
        return policy
    if isinstance(policy, ScoringPolicy):
        return WarmStartScorer(policy, seeds, places)
    return WarmStart(policy, seeds, places)
