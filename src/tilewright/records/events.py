"""The events of a run: requests and results in order, one JSON line each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, field_validator

from tilewright.records.base import SCHEMA_VERSION, Record
from tilewright.records.codes import (
    FailureReason,
    IncorrectKind,
    InputOrigin,
    Stage,
    UnjudgedReason,
)
from tilewright.records.outcome import Verdict
from tilewright.records.problem import SourceFile
from tilewright.records.request import Protocol

Role = Literal["propose", "measure", "say", "draft", "choose"]
"""`propose`: write a candidate, which is judged. `draft`: write one that is not judged. `measure`:
judge the parent's candidate, a draft or once more. `say`: answer the instruction in words for the
strategy. `choose`: take one of `choices`."""
Form = Literal["conversation", "exemplars", "evolve", "action", "summary", "patch"]
"""The form of a prompt: what it shows, and how it asks (`tilewright.loop.prompts`)."""


class Ask(Record):
    """A request for an answer to a problem."""

    id: str
    """Unique in its run, and the same after the run is resumed."""
    problem: str
    sample: int = Field(default=0, ge=0)
    """Number of the trajectory of its problem."""
    turn: int = Field(default=0, ge=0)
    """Number of earlier turns in that trajectory."""
    role: Role = "propose"
    parents: tuple[str, ...] = ()
    """Requests whose answers this one improves on."""
    shown_turns: tuple[str, ...] = ()
    """Requests that its prompt shows with their answers and feedback, oldest first."""
    instruction: str = ""
    """An instruction that the prompt adds to the problem."""
    prompt_override: str = ""
    """The last message of its prompt, word for word, if the run was imported."""
    form: Form = "conversation"
    operator: str = ""
    """Name of the operator of the strategy that made it."""
    policy: str = ""
    """Name of the model that answers, as in the setting `models`; empty: the model of the run."""
    documents: tuple[str, ...] = ()
    """Digests of the documents that its prompt shows."""
    choices: tuple[str, ...] = ()
    """The legal answers of a request with the role `choose`."""
    reason: str = ""
    """Why the strategy made it, in words for readers of the log."""


class EvalSummary(Record):
    """A short form of one verdict; `report` names the file of the whole report."""

    protocol: Protocol
    verdict: Verdict
    reason: str = ""
    """The reason in words."""
    code: IncorrectKind | FailureReason | UnjudgedReason | None = None
    """Its code; `None`: the candidate is correct or rejected, or no evaluation ended."""
    stage: Stage | None = None
    """The stage in which the candidate failed."""
    exception: str | None = None
    """Name of the nearest built-in class of the exception by which it failed."""
    inputs: InputOrigin | None = None
    """Where the inputs came from on which an output was incorrect."""
    speedup: float | None = Field(default=None, gt=0)
    low: float | None = Field(default=None, gt=0)
    high: float | None = Field(default=None, gt=0)
    reference_us: float | None = Field(default=None, gt=0)
    """`baseline_us` of the first baseline, summed over cases."""
    candidate_us: float | None = Field(default=None, gt=0)
    """`candidate_us` against the first baseline, summed over cases."""
    roofline_fraction: float | None = Field(default=None, ge=0)
    """Roofline fraction of the case that takes longest."""
    coverage: float | None = Field(default=None, ge=0, le=1)
    """Share of the device time in the candidate's own kernels."""
    unchecked: float | None = Field(default=None, gt=0)
    """The speed-up of a rejected candidate whose outputs were correct, for views without checks. No
    verdict depends on it."""
    unchecked_speedup_low: float | None = Field(default=None, gt=0)
    """The lower end of the interval of `unchecked`."""
    findings: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    tolerance: float | None = Field(default=None, gt=0)
    """Tolerance of the published rules, if it is not 0.01."""
    seconds: float = Field(default=0.0, ge=0)
    """Wall time of the evaluation."""
    report: str = ""
    """Path of the report in the run folder; empty if there is none."""
    condition: str = ""
    """Digest of device model, baselines and evaluator version: trials of equal conditions may be
    pooled."""


class Reply(Record):
    """A reply of a policy, and its cost."""

    text: str
    reasoning: str = ""
    """Reasoning, if the server returns it separately."""
    model: str = ""
    prompt_tokens: int = Field(default=0, ge=0)
    reply_tokens: int = Field(default=0, ge=0)
    """With the tokens of the reasoning."""
    usd: float = Field(default=0.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)
    finish: str = ""
    """Why the reply ended, as the server says: `stop` or `length`."""
    tokens: tuple[int, ...] = ()
    """Ids of the sampled tokens, if the policy knows them."""
    logprobs: tuple[float, ...] = ()
    """Log-probability of each token, at the sampling temperature."""

    @field_validator("text", "reasoning")
    @classmethod
    def _text_can_be_written(cls, value: str) -> str:
        # Models write halves of surrogate pairs, which have no UTF-8 encoding.
        return value.encode("utf-8", "replace").decode()


class Choice(Record):
    """An answer to a request with the role `choose`."""

    taken: int = Field(ge=0)
    """Place of the taken one among the choices."""
    logprobs: tuple[tuple[float, ...], ...] = ()
    """Log-probabilities of the tokens of each choice; empty if the model gives none."""
    unclear: bool = False
    """Whether two replies named no choice, so that the first one was taken."""
    value: float | None = None
    """The expected return that a critic gave; `None`: there was no critic."""


class Turn(Record):
    """A request that was answered, and judged once under each protocol."""

    ask: Ask
    language: str = ""
    source: str = ""
    """Digest of the answer's source files."""
    prompt: str = ""
    """Digest of the prompt."""
    reply: Reply | None = None
    feedback: str = ""
    """Feedback that later prompts show."""
    judgements: tuple[EvalSummary, ...] = ()
    """Empty if the request needs no verdict."""
    code: str = ""
    """Text of the candidate's main file, where the reply does not hold it whole."""
    files: tuple[SourceFile, ...] = ()
    """The candidate's files, the main one first, where neither the reply nor `code` holds them. So
    it is after a patch or a measurement of a program that is not one Python file."""
    refused: str = ""
    """Why the answer is no candidate, or no choice; empty if it is one."""
    repeats: str = ""
    """The earlier request whose answer is the same code: its judgement holds for this one."""
    choice: Choice | None = None
    embedding: tuple[float, ...] = ()
    """Vector of the candidate, if a server computed it."""


TRAININGS = ("train", "sft", "choices")
"""Kinds of runs that train a model."""
WITHOUT_DEVICE = "none"
"""The device of a run that judges nothing on one."""


class RunStarted(Record):
    """The first line of a log: the kind and the settings of the run."""

    event: Literal["run_started"] = "run_started"
    schema_version: Literal[2] = SCHEMA_VERSION
    kind: str
    name: str
    problems: str
    protocols: tuple[Protocol, ...]
    language: str | None = None
    strategies: tuple[str, ...] = ()
    """Strategies of a search, in the order of their trajectories."""
    samples: int = Field(default=1, ge=1)
    """Trajectories of each problem and strategy."""
    evaluator: str
    device: str
    unsound_problems: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Problems that the linter found weak under strict rules, and the answers that pass them."""
    problems_not_linted: int | None = Field(default=None, ge=0)
    """Number of problems without a result of the linter; they count as sound. `None`: unknown."""


class RequestsIssued(Record):
    """The strategy issued these requests, at most `limit`."""

    event: Literal["requests_issued"] = "requests_issued"
    limit: int = Field(ge=1)
    asks: tuple[Ask, ...]


class TurnFinished(Record):
    """A turn ended, and the strategy got its result."""

    event: Literal["turn_finished"] = "turn_finished"
    turn: Turn


class SearchStopped(Record):
    """A search issues no further request, and why. A later invocation may continue it."""

    event: Literal["search_stopped"] = "search_stopped"
    reason: Literal["budget", "stalled", "reached", "nothing to do"]
    detail: str = ""


class Stepped(Record):
    """A model was trained on a batch of turns, or scored on one."""

    event: Literal["stepped"] = "stepped"
    step: int = Field(ge=0)
    """Number of optimizer steps so far."""
    batch: str
    """Beginning of the ids of its requests."""
    figures: dict[str, float | None]
    """Metrics of the training; `None` for one that could not be measured."""


Event = Annotated[
    RunStarted | RequestsIssued | TurnFinished | SearchStopped | Stepped,
    Field(discriminator="event"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
