"""Messages that only a GPU needs: shared memory, launch gate, clock, measured ceilings."""

from __future__ import annotations

from dataclasses import field

from tilewright.evaluator.judge_client.messages import (
    Answer,
    Done,
    PublishSample,
    Request,
    SampleLayout,
)
from tilewright.wire.frames import Fields

COMPILING, COMPILED, RESUME = "compiling", "compiled", "resume"
"""Kinds of the frames around a compilation in the judge. After the second the judge waits for the
third: it may use the device again."""


class SharedMemory(Answer):
    """Handles and sizes in bytes of device memory; `work` only the first time for a runner."""

    handle: str
    inputs: int
    work_handle: str | None = None
    work: int | None = None
    reserve: int | None = None

    def fields(self) -> Fields:
        """Return the header fields for the runner that maps the memory."""
        return {name: value for name, value in vars(self).items() if value is not None}


class ShareMemory(Request[SharedMemory], kind="share_memory"):
    """Allocate device memory that a runner is to map. Sizes in bytes."""

    runner: str
    inputs: int
    reserve: int
    pool: int


class MemoryMapped(Request[Done], kind="memory_mapped"):
    """Tell the judge at which addresses a GPU runner mapped its work block and its inputs."""

    runner: str
    base: int
    inputs: int


class RenameRunner(Request[Done], kind="rename"):
    """Know a runner by another name from now on."""

    runner: str
    to: str


class QueueCall(Request[Done], kind="queue_call"):
    """Queue a call of a GPU runner behind the closed launch gate.

    The judge writes `publish` once the gate is open. `keep` names the sample whose outputs it will
    copy; it allocates the memory for that copy before the call.
    """

    runner: str
    publish: PublishSample | None
    sequence: int
    keep: str | None


class ForbidTf32(Request[Done], kind="forbid_tf32"):
    """Compute in float32 as runners do, because the reference has no product in tf32."""


class OpenGate(Request[Done], kind="open_gate"):
    """Open the launch gate for a call that could not be queued whole."""


class CollectOutputs(Request[Done], kind="collect_outputs"):
    """Queue the copy of a call's outputs, if `sample` is given, and open the launch gate."""

    runner: str
    sample: str | None
    addresses: list[int]
    permuted: list[int]


class AbandonCall(Request[Done], kind="abandon_call"):
    """Release the judge's stream from a call whose runner failed."""

    runner: str


class ProbeAnswer(Answer):
    """Whether the device computed a known result."""

    right: bool


class Probe(Request[ProbeAnswer], kind="probe"):
    """Compute something on the device whose result is known."""


class CaseMeasured(Answer):
    """Bytes and operations of one call of the reference; `moved` as the problem declares it."""

    moved: int | None
    inputs: int
    weights: int
    outputs: int
    count: int
    peak: int | None
    """Device memory; `None` on a CPU."""
    flops: int | None
    precision: str


class ReleaseDevice(Request[Done], kind="release_device"):
    """Synchronize the device and empty the allocator's cache: another evaluation uses it next."""


class MeasureCase(Request[CaseMeasured], kind="measure"):
    """Run the reference once on a case and measure what it needs."""

    params: Fields
    seed: int


class DescribeCall(Request[SampleLayout], kind="describe_call"):
    """Describe a call on nominal inputs, whose values nobody compares; nothing is kept of it."""

    params: Fields
    seed: int
    forward_seed: int


class CeilingsMeasured(Answer):
    """Bytes and operations per second that the device reaches; `failed` says why it could not."""

    bytes_per_s: float | None = None
    flops_per_s: dict[str, float] = field(default_factory=dict)
    failed: str = ""


class MeasureCeilings(Request[CeilingsMeasured], kind="ceilings"):
    """Measure what the device can do at most, on a CPU with so many threads."""

    threads: int
