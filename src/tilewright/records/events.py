"""The event log of a run: what was asked and what came of it, in order, one JSON line each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, field_validator

from tilewright.records.base import SCHEMA_VERSION, Record
from tilewright.records.outcome import Verdict
from tilewright.records.request import Protocol

__all__ = [
    "EVENT",
    "Ask",
    "EvalSummary",
    "Event",
    "Reply",
    "RequestsIssued",
    "Role",
    "RunStarted",
    "Stepped",
    "Turn",
    "TurnFinished",
]

Role = Literal["propose", "measure", "say"]
"""`propose`: write a candidate, which is judged. `measure`: judge the parent's candidate once more.
`say`: answer the instruction in words that a strategy reads; nothing is judged."""


class Ask(Record):
    """What is wanted next: an answer to a problem."""

    id: str
    """Names it within its run, also when the run is resumed."""
    problem: str
    sample: int = Field(default=0, ge=0)
    """Which trajectory of its problem it belongs to."""
    turn: int = Field(default=0, ge=0)
    """How many turns of that trajectory come before it."""
    role: Role = "propose"
    parents: tuple[str, ...] = ()
    """Asks from whose answers it goes on."""
    shown_turns: tuple[str, ...] = ()
    """Asks that its prompt shows with their answers and what was said of them, oldest first."""
    instruction: str = ""
    """What the prompt asks for beside the problem."""
    prompt_override: str = ""
    """The last message of its prompt, word for word, where others wrote it: of an import."""


class EvalSummary(Record):
    """One verdict on an answer, in short; `report` holds the whole."""

    protocol: Protocol
    verdict: Verdict
    reason: str = ""
    speedup: float | None = Field(default=None, gt=0)
    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)
    reference_us: float | None = Field(default=None, gt=0)
    """Median device or call time of the first baseline, summed over cases."""
    candidate_us: float | None = Field(default=None, gt=0)
    """The same of the candidate."""
    light: float | None = Field(default=None, ge=0)
    """Share of the speed of light, of the case that takes longest."""
    coverage: float | None = Field(default=None, ge=0, le=1)
    """Share of the device time that is in its own kernels."""
    unchecked: float | None = Field(default=None, gt=0)
    """The speed-up of a rejected candidate whose outputs were right. For
    views without checks; no verdict rests on it."""
    unchecked_low: float | None = Field(default=None, gt=0)
    """The lower end of its interval."""
    findings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    tolerance: float | None = Field(default=None, gt=0)
    """By which published rules compared, where they compare by one that is not 0.01."""
    seconds: float = Field(default=0.0, ge=0)
    """Wall time of the evaluation."""
    report: str = ""
    """Path of the report in the run folder; empty where there is none."""


class Reply(Record):
    """What a policy wrote, and what that cost."""

    text: str
    reasoning: str = ""
    """What it thought aloud, where its server keeps that apart."""
    model: str = ""
    prompt_tokens: int = Field(default=0, ge=0)
    reply_tokens: int = Field(default=0, ge=0)
    """Reasoning included."""
    usd: float = Field(default=0.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    finish: str = ""
    """Why it ended, in its server's word: `stop`, `length`."""
    tokens: tuple[int, ...] = ()
    """Ids of what was sampled, where the policy knows them."""
    logprobs: tuple[float, ...] = ()
    """Log-probability of each token, at the sampling temperature."""

    @field_validator("text", "reasoning")
    @classmethod
    def _text_can_be_written(cls, value: str) -> str:
        # Models write halves of surrogate pairs, which are no text.
        return value.encode("utf-8", "replace").decode()


class Turn(Record):
    """An ask that was answered and judged, once under each protocol."""

    ask: Ask
    language: str = ""
    source: str = ""
    """Digest of the answer."""
    prompt: str = ""
    """Digest of what the policy was shown."""
    reply: Reply | None = None
    feedback: str = ""
    """What a later prompt says of it."""
    judgements: tuple[EvalSummary, ...] = ()
    """Empty where nothing was to be judged."""


class RunStarted(Record):
    """The first line: what kind of run it is."""

    event: Literal["run_started"] = "run_started"
    schema_version: Literal[2] = SCHEMA_VERSION
    kind: str
    name: str
    problems: str
    protocols: tuple[Protocol, ...]
    language: str | None = None
    evaluator: str
    device: str
    unsound_problems: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Problems that the linter found weak strictly, and the answers that pass on them."""
    problems_not_linted: int | None = Field(default=None, ge=0)
    """How many it never looked at: these count as sound. `None`: nobody asked."""


class RequestsIssued(Record):
    """The strategy was asked for at most `limit` asks, and gave these."""

    event: Literal["requests_issued"] = "requests_issued"
    limit: int = Field(ge=1)
    asks: tuple[Ask, ...]


class TurnFinished(Record):
    """A turn ended, and the strategy was told."""

    event: Literal["turn_finished"] = "turn_finished"
    turn: Turn


class Stepped(Record):
    """A model was trained on a batch of turns, or scored on one."""

    event: Literal["stepped"] = "stepped"
    step: int = Field(ge=0)
    """Optimizer steps that were made by then."""
    batch: str
    """With which the ids of its asks begin."""
    figures: dict[str, float | None]
    """The health of the run; `None` where there was nothing to measure."""


Event = Annotated[
    RunStarted | RequestsIssued | TurnFinished | Stepped, Field(discriminator="event")
]
EVENT: TypeAdapter[RunStarted | RequestsIssued | TurnFinished | Stepped] = TypeAdapter(Event)
