"""The schema of a runner's reports, and how one ends an evaluation.

Anything else that a runner sends is a protocol error of the candidate.
"""

from __future__ import annotations

import builtins
import json
import os
import re
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from tilewright.evaluator.processes.sandbox_policy import is_hidden_module
from tilewright.records import Failed, Outcome, Unjudged
from tilewright.records.codes import FailureReason, Stage, UnjudgedReason
from tilewright.scoring.report_text import engineering
from tilewright.wire.frames import Fields, Frame, FrameError
from tilewright.wire.names import DEVICE_MEMORY_TEXTS, HOST_MEMORY_TEXT

NAMES_BYTES = 512 << 10
HIDDEN_MODULE = (
    " (a folder of PYTHONPATH that the sandbox hides has it: `--python-path DIR` shows it)"
)
"""Text that a failure adds if a folder that the sandbox does not show has the module."""
MEMORY_TYPES = ("MemoryError", "OutOfMemoryError")
MEMORY_TEXTS = (*DEVICE_MEMORY_TEXTS, HOST_MEMORY_TEXT)
_ALLOCATION = re.compile(r"you tried to allocate (\d{1,30}) bytes")
"""The text of torch about an allocation on a CPU that failed."""
WEIGHT_DTYPES = (
    *("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "bool"),
)
"""Dtypes of weights that can cross the sandbox: those of wire/tensors.py, which needs torch."""
Text = Annotated[str, Field(max_length=8192)]
Count = Annotated[int, Field(ge=0, le=1 << 40)]
Address = Annotated[int, Field(ge=0, lt=1 << 57)]


class EvaluationEnded(Exception):
    """An evaluation is over; `outcome` says how. It is control flow, not an error of tilewright.

    Functions that start, call or await a runner or a builder raise it if that process crashes,
    hangs, reports an exception or breaks the protocol. A missing isolation layer raises it too.
    """

    def __init__(
        self, outcome: Outcome, runner: str = "candidate", *, repeatable: bool = False
    ) -> None:
        super().__init__(outcome.verdict)
        self.outcome = outcome
        self.runner = runner
        """The runner that ended it: a baseline's failure is not the candidate's."""
        self.repeatable = repeatable
        """Whether a repetition may end in another way: the runner served an earlier evaluation, or
        the machine was too busy to stop it."""

    @classmethod
    def failed(cls, stage: Stage, reason: FailureReason, message: str) -> EvaluationEnded:
        """Return the end by a failure of the candidate."""
        return cls(Failed(stage=stage, reason=reason, message=message))

    @classmethod
    def unjudged(cls, reason: UnjudgedReason, message: str) -> EvaluationEnded:
        """Return the end without a verdict."""
        return cls(Unjudged(reason=reason, message=message))


class SelfReported(BaseModel):
    """Base: frozen, closed, strict."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class OutputReport(SelfReported):
    """A runner's report of one output."""

    type: Text
    dtype: Text = ""
    shape: list[Count] = Field(default_factory=list, max_length=64)
    device: Text = ""
    layout: Text = ""
    address: Address | None = None
    alias: bool = False
    structure: Text = "1"

    def described(self) -> Fields:
        """Return the plain values that travel on to the judge."""
        return self.model_dump(exclude={"alias"}, exclude_none=True)


class Mapped(SelfReported):
    """Where the inputs' mirror, or the work block, lies; believed before a candidate is loaded."""

    base: Address
    inputs: Address = 0
    """Where a GPU runner has mapped the inputs."""


class Addresses(SelfReported):
    """The addresses of the requested weights."""

    addresses: list[Address] = Field(max_length=4096)


class ShapeReport(SelfReported):
    """How a kernel was compiled and launched."""

    name: Text
    blocks: Annotated[int, Field(ge=1, le=1 << 62)]
    threads: Annotated[int, Field(ge=1, le=1 << 20)]
    registers: Count | None = None
    shared_bytes: Count | None = None
    spilled_bytes: Count | None = None
    tensor_cores: bool | None = None


class Result(SelfReported):
    """The answer to a call."""

    outputs: list[OutputReport] = Field(max_length=64)
    launches: Count
    operator_counts: dict[Text, Count] = Field(default_factory=dict, max_length=256)
    self_reported_us: float | None = Field(default=None, ge=0)
    """The duration of a timed call on a device by the runner's own events."""
    own_us: float | None = Field(default=None, ge=0)
    """How much of it passed between events around the candidate's own launches."""
    shapes: list[ShapeReport] = Field(default_factory=list, max_length=16)
    """Shapes of its own Triton kernels, in a call with a profile."""
    peak_bytes: Count | None = None
    """Device memory that the call allocated at its peak."""


class KernelReport(SelfReported):
    """Kernels of one name, as its profiler lists them."""

    name: Text
    launches: Annotated[int, Field(ge=1, le=1 << 40)]
    total_us: float = Field(ge=0)
    shape: ShapeReport | None = None


class Traced(SelfReported):
    """The kernels of one call."""

    kernels: list[KernelReport] = Field(max_length=256)


class ErrorReport(SelfReported):
    """An exception in the candidate."""

    during: Text
    type: Text
    builtin: Text = ""
    """Name of the nearest built-in class of the exception."""
    message: Text
    traceback: list[Text] = Field(max_length=64)
    missing: Annotated[str, Field(max_length=200)] = ""
    """Name of the module that an import did not find, by the exception's attribute `name`."""

    def described(self) -> str:
        """Return type, message and traceback, and which option shows a missing module."""
        hint = HIDDEN_MODULE if is_hidden_module(self.missing) else ""
        lines = [f"{self.type}: {self.message}{hint}", *self.traceback]
        if found := _ALLOCATION.search(self.message):
            size = engineering(float(found[1]), "B")
            lines.insert(0, f"it tried to allocate {size} at once, more memory than it may have")
        return "\n".join(lines)


class Built(SelfReported):
    """Sizes of the libraries that follow as bytes."""

    artifacts: dict[Annotated[str, Field(max_length=1024)], Count] = Field(max_length=64)
    """Their names travel on in one frame with the request to load."""


Model = TypeVar("Model", bound=SelfReported)


def read(frame: Frame, model: type[Model]) -> Model:
    """Return the frame's fields as `model`, or raise `FrameError` if they break the schema."""
    try:
        return model.model_validate(frame.fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FrameError(f"{frame.kind}: {where}: {first['msg']}") from error


_Weight = tuple[Text, Annotated[list[Count], Field(max_length=16)], Text]
_WEIGHTS: TypeAdapter[list[_Weight]] = TypeAdapter(Annotated[list[_Weight], Field(max_length=4096)])


def read_weights(body: bytes) -> bytes:
    """Return the list of (name, shape, dtype) in `body`, checked and encoded anew.

    Entries of a dtype that cannot cross the sandbox are left out. A `FrameError` says that it is
    not such a list, or that its names are longer than a frame can name.
    """
    try:
        entries = _WEIGHTS.validate_json(body)
    except ValidationError as error:
        raise FrameError(f"weights: {error.errors()[0]['msg']}") from error
    # As they travel between judge and supervisor, some of them or all.
    size = len(json.dumps([name for name, *_ in entries]))
    if size > NAMES_BYTES:
        raise FrameError(f"weights: their names are {size} bytes, at most {NAMES_BYTES}")
    return _WEIGHTS.dump_json([entry for entry in entries if entry[2] in WEIGHT_DTYPES])


def failure_of(report: ErrorReport, stage: Stage) -> Failed:
    """Return the failure of a candidate whose runner reported an exception."""
    reason = FailureReason.EXCEPTION
    if report.type in MEMORY_TYPES or any(text in report.message for text in MEMORY_TEXTS):
        reason = FailureReason.OUT_OF_MEMORY
    elif report.type in ("SystemExit", "KeyboardInterrupt"):
        reason = FailureReason.UNEXPECTED_EXIT
    exception = report.builtin if is_builtin_exception(report.builtin) else None
    message = report.described()
    return Failed(stage=stage, reason=reason, exception=exception, message=message)


def is_out_of_device_memory(outcome: Outcome) -> bool:
    """Tell whether a failure is a lack of device memory, and not one of host memory.

    The supervisor's own limits are of host memory; their failures name no exception.
    """
    return (
        isinstance(outcome, Failed)
        and outcome.reason == FailureReason.OUT_OF_MEMORY
        and outcome.exception not in (None, "MemoryError")
    )


def is_builtin_exception(name: str) -> bool:
    """Tell whether Python has a built-in exception of this name."""
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, BaseException)


def emptied(frame: Frame, takes: int = 0) -> Frame:
    """Close the descriptors of a frame, except for those that the caller expects."""
    for fd in frame.fds[takes:]:
        os.close(fd)
    return frame
