"""Messages between supervisor and judge: one frame for each request, and one for its answer.

Both ends import this module, which needs neither torch nor pydantic. The fields of a message are
the JSON header of its frame (wire/frames.py); one may travel as raw body or as file descriptors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, dataclass_transform, get_args

from tilewright.wire.frames import Fields, Frame, FrameError, Tree
from tilewright.wire.names import OutputMemory

PROBLEM_FAILED = "problem_failed"
"""Kind of the frame that reports a failure of the problem's own code."""

ComparisonRule = dict[str, Any]
"""A published rule of comparison: `name` and its numbers (judge/official_comparison.py)."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class JudgeMessage:
    """A base whose subclasses are frozen dataclasses."""

    def __init_subclass__(cls) -> None:
        """Make a class a dataclass."""
        super().__init_subclass__()
        dataclass(frozen=True)(cls)


class Answer(JudgeMessage):
    """An answer of the judge. The judge runs a problem's code, so the supervisor checks types."""

    __pydantic_config__: ClassVar[Fields] = {"extra": "forbid"}


A = TypeVar("A", bound=Answer)


class Request(JudgeMessage, Generic[A]):
    """A question of the supervisor; `A` is the type of the answer."""

    KIND: ClassVar[str]
    ANSWER: ClassVar[type[Answer]]
    BODY: ClassVar[str] = ""
    """The field that travels as the raw body of the frame."""
    FDS: ClassVar[str] = ""
    """The field that travels as file descriptors."""

    def __init_subclass__(cls, kind: str = "") -> None:
        """Register a request under its frame kind, with the answer that its base names."""
        super().__init_subclass__()
        if kind:
            (cls.ANSWER,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]
            cls.KIND = kind
            REQUESTS[kind] = cls


REQUESTS: dict[str, type[Request[Any]]] = {}
"""Every request by the kind of its frame."""


def fields_of(message: JudgeMessage) -> Fields:
    """Return the header fields of a message; messages within it become their fields."""
    return {
        name: fields_of(value) if isinstance(value, JudgeMessage) else value
        for name, value in vars(message).items()
    }


def encode(message: Request[A]) -> tuple[str, Fields, bytes, tuple[int, ...]]:
    """Return kind, header fields, body and descriptors of the frame of a request."""
    fields = fields_of(message)
    body, fds = fields.pop(message.BODY, b""), fields.pop(message.FDS, ())
    return message.KIND, fields, body, fds


def decode(frame: Frame) -> Request[Any]:
    """Return the request that a frame carries; raise `FrameError` for any other frame."""
    kind = REQUESTS.get(frame.kind)
    if kind is None:
        raise FrameError(f"the judge knows no request {frame.kind!r}")
    fields = dict(frame.fields)
    if kind.BODY:
        fields[kind.BODY] = frame.body
    if kind.FDS:
        fields[kind.FDS] = frame.fds
    try:
        if fields.get("publish") is not None:
            fields["publish"] = PublishSample(**fields["publish"])
        return kind(**fields)
    except TypeError as error:
        raise FrameError(f"fields of {frame.kind!r}: {error}") from error


class ProblemFailed(Answer):
    """The problem's own code failed; `out_of_memory` says whether device memory was missing."""

    message: str
    out_of_memory: bool


class Done(Answer):
    """The judge did as it was asked."""


class ProblemLoaded(Answer):
    """The tree of the constructor's arguments, their size in bytes, and what the problem is."""

    init: Tree
    init_bytes: int
    is_module: bool


class LoadProblem(Request[ProblemLoaded], kind="problem"):
    """Load a problem's source. `rule` is the published comparison rule; `None` is ours."""

    BODY: ClassVar[str] = "source"
    source: bytes
    problem_kind: str
    mode: str
    grads: list[str]
    writable_inputs: list[str]
    keywords: list[str]
    init_seed: int
    threads: int
    rule: ComparisonRule | None
    tf32: bool
    compares_overwritten: bool
    buffers: list[str] = field(default_factory=list)
    file: str = "problem.py"


class MapInputs(Request[Done], kind="map"):
    """Know a CPU runner by descriptors of its memory, its memory map and its pages.

    `address` is where its input memory begins.
    """

    FDS: ClassVar[str] = "fds"

    runner: str
    address: int
    fds: tuple[int, ...] = ()


class Forget(Request[Done], kind="forget"):
    """Forget runners and input samples by name, all samples if `everything`, and snapshots."""

    runners: list[str] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    everything: bool = False


class PublishInit(Request[Done], kind="publish_init"):
    """Write the constructor's arguments into a runner's input memory."""

    runner: str


class ResetWeights(Request[Done], kind="reset_weights"):
    """Give the reference the weights of the init seed again."""


class WeightsPlan(Answer):
    """Names of a runner's weights whose values the judge must read to match them."""

    need: list[str]


class PlanWeights(Request[WeightsPlan], kind="plan_weights"):
    """Draw new weights under `seed`, once, and match a runner's weights with them by name.

    `entries` is the runner's own list of names, shapes and dtypes, in JSON. With `initial` only
    the buffers that the problem declares are planned, with their values of the init seed.
    """

    BODY: ClassVar[str] = "entries"

    runner: str
    seed: int
    initial: bool = False
    entries: bytes = b""


class MatchWeights(Request[Done], kind="match_weights"):
    """Match the weights of a runner that lie at the given addresses by their values."""

    runner: str
    names: list[str]
    addresses: list[int]


class WeightsApplied(Answer):
    """Names of new weights that some runner cannot hold, and the size of the others in bytes."""

    lacking: list[str]
    bytes: int


class ApplyWeights(Request[WeightsApplied], kind="apply_weights"):
    """Give the reference the new weights that all of these runners can hold."""

    runners: list[str]


class WeightsPublished(Answer):
    """Where the weights lie in the runner's input memory."""

    tree: Tree


class PublishWeights(Request[WeightsPublished], kind="publish_weights"):
    """Write the applied weights into a runner's input memory, under the runner's names."""

    runner: str


class OutputPlaces(JudgeMessage):
    """How outputs may lie in memory, besides contiguous and in memory of their own.

    Attributes:
        aliases: whether the reference returns a view of an input, or inputs are writable.
        writable: first byte, and first byte behind it, of each input that a call may overwrite.
        shared: pairs of outputs that the reference returns in the same memory, by their places.
        strides: for each output those of the reference's, if it is dense in an order of its own.
    """

    aliases: bool
    writable: list[list[int]]
    shared: list[list[int]]
    strides: list[list[int] | None]


class SampleLayout(Answer):
    """How an input sample and its expected outputs lie in memory, without their values."""

    tree: Tree
    variation: str
    """The variation that was made: a weaker one, as `scale/4`, if the reference needs that."""
    grad_outputs: Tree
    grads: list[int]
    size: int
    outputs: list[Tree]
    output_bytes: int
    structure: str
    oracle: str
    random: bool
    stateful: bool
    """Whether the reference keeps state from call to call, which explains the randomness."""
    skipped: str
    """Why the reference cannot judge on this sample; empty if it can."""
    call_s: float
    ran_out_of_memory: bool
    """Whether the device had too little memory for the float64 oracle of this sample."""
    places: OutputPlaces


class MakeSample(Request[SampleLayout], kind="sample"):
    """Make an input sample and the expected outputs. Nothing of them reaches a runner yet.

    With `timed` the judge keeps only the form of the outputs: it computes them after each call.
    """

    sample: str
    params: Fields
    variation: str
    seed: int
    forward_seed: int
    timed: bool


class SampleRenewed(Answer):
    """Whether the sample holds values that its generator made under the new seed.

    `tree` lays its arguments out; values of it that are no tensors may be new too.
    """

    fresh: bool
    tree: Tree


class RenewSample(Request[SampleRenewed], kind="renew"):
    """Sample the inputs of a timed call anew, in the memory of an earlier sample.

    The judge computes `variation` for every call, and uses it only if `varied`. So the time between
    two calls does not tell the candidate which values come next. `base` is what else is used.
    """

    sample: str
    seed: int
    forward_seed: int
    variation: str
    varied: bool
    base: str = "nominal"


class InputsWritten(Answer):
    """Whether the inputs could be written into the runner's memory."""

    written: bool


class PublishSample(Request[InputsWritten], kind="publish"):
    """Write an input sample at `base` bytes into a runner's input memory.

    A CPU runner is stopped meanwhile: it can read the inputs only once its call has begun.
    """

    sample: str
    runner: str
    base: int


class CallAnswer(Answer):
    """The judge's observations of one call; `wrong` is empty if the outputs are right."""

    wrong: str
    message: str
    error: float | None
    mutated: list[str]
    """Inputs that the call changed and that it may not change."""
    misplaced: list[OutputMemory]
    """Memory in which an output lies although the caller could not keep it there."""
    repeated: bool = False
    """Whether wrong outputs for a random reference are those of an earlier call."""
    ran_out_of_memory: bool = False
    """Whether the device had too little memory for a float64 oracle of this comparison."""


class TimedAnswer(CallAnswer):
    """The same after a timed call.

    Attributes:
        seconds: by the judge's clock, `None` if it has none.
        ready_bytes: bytes of outputs that had their values before the call, or that nobody has
            written on a CPU; `None`: unknown.
        unchanged_bytes: bytes of the expected outputs on a CPU that are as in the call before.
        as_checked_s: seconds that a comparison by the rules of checked calls took.
    """

    seconds: float | None = None
    ready_bytes: int | None = None
    unchanged_bytes: int | None = None
    as_checked_s: float = 0.0


class CheckOutputs(Request[CallAnswer], kind="check"):
    """Compare outputs that were kept with the expected ones; `outputs` is the runner's report."""

    sample: str
    runner: str
    outputs: list[Tree]


class FinishTimed(Request[TimedAnswer], kind="finish_timed"):
    """Look at a call that has ended, all in one message: every exchange delays the next call.

    Attributes:
        sample: the input sample; `None`: report only the time.
        addresses: where the runner says its outputs lie.
        permuted: places of outputs that it says have the strides of the reference's outputs.
        call: number of the call, by which its outputs are known later.
        held: numbers of earlier calls of this runner whose outputs the caller still holds.
        dropped: those of them whose outputs the caller overwrites and then gives back.
        look: byte ranges of the runner's inputs to compare with the master; `None`: all of them.
        keep: copy the outputs away.
        expect: compute the expected outputs now, since no baseline did.
        compare: compare the candidate's outputs with the baseline's or the expected ones.
        as_checked: with `compare`, compare them as those of a checked call too.
        wait_s: how long the judge waits for the end of the call on a GPU.
    """

    sample: str | None
    runner: str = ""
    base: int = 0
    addresses: list[int] = field(default_factory=list)
    call: int = 0
    held: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    look: list[list[int]] | None = None
    keep: bool = False
    expect: bool = False
    compare: bool = False
    wait_s: float = 0.0
    permuted: list[int] = field(default_factory=list)
    as_checked: bool = False
