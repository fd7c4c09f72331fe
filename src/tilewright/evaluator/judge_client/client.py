"""The supervisor's end of the channel to the judge."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar
from typing import Protocol as Interface

from pydantic import TypeAdapter, ValidationError

from tilewright.errors import (
    CompilationTimeout,
    InfrastructureError,
    ProblemError,
    ProblemOutOfMemory,
)
from tilewright.evaluator.context import EvaluationContext
from tilewright.evaluator.judge_client import messages
from tilewright.evaluator.judge_client.gpu_messages import COMPILED, COMPILING, RESUME, DescribeCall
from tilewright.evaluator.judge_client.messages import Answer, ComparisonRule, Request, SampleLayout
from tilewright.evaluator.judge_client.problem_messages import TryVariation
from tilewright.evaluator.processes.forkserver_client import Child, receive_frame, send_frame
from tilewright.evaluator.processes.host import JUDGE_MEMORY
from tilewright.evaluator.processes.memory_ledger import DeviceCrowded
from tilewright.records import Case, Problem, Protocol
from tilewright.wire.frames import DeadlineExceeded, Fields, Frame, Tree

MIN_TIMEOUT_S = 30.0
"""The judge has at least this many seconds for an answer, however short the candidate's limits are.
The reference may be slower than the candidate is allowed to be."""
DEFAULT_TIMEOUT_S = 120.0
"""Seconds for an answer that depends on the problem's code; more than any case has needed."""

PAGE_BYTES = 4096
"""Slots of the input memory are multiples of this: the page size of every supported host."""
TOLERANCE = 1e-2
"""KernelBench's, where a problem names none."""
TRIALS = {"allclose": 5, "by_dtype": 1, "elementwise": 1, "runs": 1}
"""How many inputs are drawn of a case."""
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True)
class InputSampleInfo:
    """An input sample: how it lies in memory, not what its values are."""

    name: str
    case: str
    variation: str
    seed: int
    forward_seed: int
    layout: SampleLayout

    @property
    def slot_bytes(self) -> int:
        """Return the size of one slot of the input memory, in whole pages."""
        return -(-self.layout.size // PAGE_BYTES) * PAGE_BYTES

    def call_fields(self, slot: int) -> Fields:
        """Return the fields by which a runner calls on this sample, published at `slot`."""
        return {
            "base": slot * self.slot_bytes,
            "size": self.layout.size,
            "args": self.layout.tree,
            "grads": self.layout.grads,
            "grad_outputs": self.layout.grad_outputs,
            "forward_seed": self.forward_seed,
            "expected": self.layout.outputs,
            "writable": self.layout.places.writable,
            "shared": self.layout.places.shared,
            "strides": self.layout.places.strides,
        }

    def dtypes(self) -> set[str]:
        """Return the dtypes of inputs and outputs."""
        inputs = tensors_of(self.layout.tree)
        return {item["dtype"] for item in (*self.layout.outputs, *inputs)}

    def input_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Return the shapes of the tensors among the arguments, in order."""
        return tuple(tuple(item["shape"]) for item in tensors_of(self.layout.tree))


def tensors_of(tree: Tree) -> Iterator[Tree]:
    """Yield the descriptions of the tensors in a tree of arguments, in order."""
    match tree:
        case {"t": "tensor"}:
            yield tree
        case {"t": "list" | "tuple", "v": items}:
            for item in items:
                yield from tensors_of(item)
        case {"t": "dict" | "object", "v": items}:
            for _, item in items:
                yield from tensors_of(item)
        case _:
            pass


def has_only_tensors(tree: Tree) -> bool:
    """Tell whether every leaf of a tree of arguments is a tensor."""
    if tree["t"] in ("list", "tuple"):
        return all(has_only_tensors(item) for item in tree["v"])
    if tree["t"] in ("dict", "object"):
        return all(has_only_tensors(item) for _, item in tree["v"])
    return bool(tree["t"] == "tensor")


def comparison_rule(problem: Problem, protocol: Protocol) -> ComparisonRule | None:
    """Return the rule by which outputs are compared; `None`: ours, against a float64 oracle.

    A candidate that quantizes cannot be compared with an oracle. Under `strict` the problem's
    `thresholds` apply, with the root mean square error in units of the reference error. The
    absolute threshold of KernelBench-X refuses textbook quantization (its defect K2).
    """
    if problem.thresholds is not None:
        numbers = dict(zip(("cosine", "l1", "rmse"), problem.thresholds, strict=True))
        return {"name": "quantized", **numbers, "relative": protocol == "strict"}
    if protocol == "strict":
        return None
    if problem.official_comparison == "allclose":
        return {"name": "allclose", "tolerance": problem.tolerance or TOLERANCE}
    if problem.official_comparison == "elementwise":
        rtol, atol = problem.tolerances or (TOLERANCE, TOLERANCE)
        return {"name": "elementwise", "rtol": rtol, "atol": atol}
    return {"name": problem.official_comparison}


@dataclass
class PendingAnswer(Generic[A]):
    """The answer to a request that was sent. Lifetime: until `get` has returned."""

    judge: JudgeClient
    request: Request[A]
    answer: A | None = None

    def get(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> A:
        """Wait for the answer, and before it for those to earlier requests; raise as `request`."""
        while self.answer is None:
            self.judge.receive(timeout_s)
        return self.answer


_validator: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""The validator of an answer's type, made at first use: all of them together take 5 ms."""


class Neighbour(Interface):
    """A runner that shares memory with the judge."""

    inputs_bytes: int

    def excess(self) -> str:
        """Kill the process if it holds too much memory; return how much, or nothing."""


class JudgeClient:
    """Requests to the judge of one evaluation. Lifetime: until `disconnect`."""

    def __init__(self, context: EvaluationContext) -> None:
        self.context = context
        self.child: Child | None = None
        """The judge's process; `None` before there is one."""
        self._open: deque[PendingAnswer[Any]] = deque()
        self._samples = 0
        self.ran_out_of_memory = False
        """Whether the float64 oracle of a sample or of a comparison lacked device memory."""
        self.without_device: Callable[[], AbstractContextManager[object]] = nullcontext
        """The context of a compilation in the judge, which needs no device."""
        self.without_device_s = 0.0
        """Seconds of such compilations, and of the waits for the device after them."""
        self.neighbours: Mapping[str, Neighbour] = {}
        """The runners, whose memory is watched while the judge works."""

    def disconnect(self) -> Child | None:
        """Return the judge's process, which is nobody's now; `None`: there was none."""
        child, self.child = self.child, None
        self._open.clear()
        return child

    @property
    def running(self) -> bool:
        """Whether there is a judge that can be asked."""
        return self.child is not None and not self.child.closed

    def request(self, message: Request[A], timeout_s: float = DEFAULT_TIMEOUT_S) -> A:
        """Send a request and return its answer.

        Raises:
            ProblemError: the problem's own code failed.
            InfrastructureError: the judge was lost; the evaluation may be repeated.
        """
        return self.send(message).get(timeout_s)

    def send(self, message: Request[A]) -> PendingAnswer[A]:
        """Send a request and go on; `get` of the reply returns the answer."""
        if self.child is None:
            raise InfrastructureError("the judge is not running")
        send_frame(self.child, *messages.encode(message))
        reply = PendingAnswer(self, message)
        self._open.append(reply)
        return reply

    def receive(self, timeout_s: float) -> None:
        """Receive the answer to the oldest open request; raise as `request` does."""
        if self.child is None:
            raise InfrastructureError("the judge is not running")
        request, reply = self.context.request, self._open.popleft()
        kind = reply.request.KIND
        timeout_s = min(timeout_s, max(request.limits.total_timeout_s, MIN_TIMEOUT_S))
        frame = self._answered(self.child, kind, timeout_s)
        if frame.kind == messages.PROBLEM_FAILED:
            failed = _validator(messages.ProblemFailed).validate_python(frame.fields)
            if failed.out_of_memory and self.context.host.shares_memory:
                raise DeviceCrowded(f"the judge lacked memory of the device: {failed.message}")
            raised = ProblemOutOfMemory if failed.out_of_memory else ProblemError
            raise raised(f"{request.problem.id}: {failed.message}")
        if frame.kind != "answer":
            raise InfrastructureError(f"the judge answered {frame.kind!r} to {kind!r}")
        try:
            reply.answer = answer = _validator(reply.request.ANSWER).validate_python(frame.fields)
        except ValidationError as error:
            raise InfrastructureError(
                f"the judge answered {kind!r} with other fields: {error}"
            ) from error
        if isinstance(answer, messages.SampleLayout | messages.CallAnswer):
            self._note_out_of_memory(happened=answer.ran_out_of_memory)

    def _note_out_of_memory(self, *, happened: bool) -> None:
        self.ran_out_of_memory |= happened
        if happened and self.context.host.shares_memory:
            # With more memory the float64 oracle would decide, and maybe otherwise.
            raise DeviceCrowded("the judge lacked memory of the device for the float64 oracle")

    def _answered(self, child: Child, kind: str, timeout_s: float) -> Frame:
        """Return the answer to a request, after the compilations that it needs."""
        start, compiling, compiled_s = time.monotonic(), False, 0.0
        without_s = self.without_device_s
        try:
            while True:
                left_s = start + self.without_device_s - without_s + timeout_s - time.monotonic()
                frame = receive_frame(child, kind, left_s, self._watch)
                if frame.kind != COMPILING:
                    return frame
                compiling = True
                began = time.monotonic()
                with self.without_device():
                    # All compilations of a request together have as long as its work.
                    ended = receive_frame(child, kind, timeout_s - compiled_s, self._watch)
                    compiled_s += time.monotonic() - began
                if ended.kind != COMPILED:
                    raise InfrastructureError(f"the judge sent {ended.kind!r} while it compiled")
                compiling = False
                self.without_device_s += time.monotonic() - began
                send_frame(child, RESUME, {})
        except InfrastructureError as error:
            if not isinstance(error.__cause__, DeadlineExceeded):
                raise
            # The judge lives and runs the problem's code; another judge would hang there too.
            problem = self.context.request.problem.id
            if compiling:
                text = f"the kernels of its reference did not compile within {timeout_s:g} s"
                raise CompilationTimeout(f"{problem}: {text}") from error
            raise ProblemError(f"{problem}: its code did not end within {timeout_s:g} s") from error

    def _watch(self) -> None:
        """Check client and memory; raise `ProblemError` if the problem's code holds too much."""
        self.context.watch()
        # A holder of the device may need the judge's memory while the judge compiles.
        self.context.host.answer_request()
        request, runners = self.context.request, self.neighbours.values()
        for runner in runners:
            runner.excess()
        shared = sum(runner.inputs_bytes for runner in runners)
        allowed = request.limits.memory_bytes * JUDGE_MEMORY + shared
        if self.child and (used := self.child.memory.excess(allowed)):
            raise ProblemError(
                f"{request.problem.id}: its code held {used >> 20} MiB of memory, at most "
                f"{allowed >> 20} MiB are allowed"
            )

    def drain(self) -> None:
        """Receive the answers to all open requests; failures of the problem are dropped."""
        while self._open:
            with suppress(ProblemError):
                self.receive(DEFAULT_TIMEOUT_S)

    def sample(
        self, case: Case, variation: str, repeat: int = 0, *, timed: bool = False
    ) -> InputSampleInfo:
        """Have the judge make an input sample; none of it reaches a runner yet (`MakeSample`)."""
        self._samples += 1
        name, context = str(self._samples), self.context
        seed = context.seed("inputs", case.name, variation, repeat)
        forward_seed = context.seed("forward", repeat) & 0x7FFFFFFF
        layout = self.request(
            messages.MakeSample(name, dict(case.params), variation, seed, forward_seed, timed)
        )
        return InputSampleInfo(name, case.name, layout.variation, seed, forward_seed, layout)

    def refusal(self, case: Case, variation: str) -> str:
        """Return why the reference cannot judge on a variation, without an oracle; empty if it can.

        Nothing of this sample is kept.
        """
        seed, forward_seed = self.context.seed("tried", case.name, variation), 0
        params = dict(case.params)
        return self.request(TryVariation(params, variation, seed, forward_seed)).refusal

    def described_call(self, case: Case) -> InputSampleInfo:
        """Describe a call on a case, without a sample that anybody compares (`DescribeCall`)."""
        seed, forward_seed = self.context.seed("shapes", case.name), 0
        layout = self.request(DescribeCall(dict(case.params), seed, forward_seed))
        return InputSampleInfo("", case.name, layout.variation, seed, forward_seed, layout)

    def forget(self, sample: InputSampleInfo) -> None:
        """Let the judge drop an input sample."""
        self.request(messages.Forget(samples=[sample.name]))
