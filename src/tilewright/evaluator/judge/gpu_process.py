"""A judge whose inputs, reference and clock are on a GPU."""

from __future__ import annotations

import socket
from typing import Any

import torch

from tilewright.evaluator.judge import ceilings, reference
from tilewright.evaluator.judge.launch_gate import LaunchGates
from tilewright.evaluator.judge.memory_reader import DeviceMemory
from tilewright.evaluator.judge.process import Judge, serve
from tilewright.evaluator.judge.runner_state import RunnerState
from tilewright.wire.frames import Channel, Frame
from tilewright.wire.tensors import Layout

EXTRA = (
    *("probe", "ceilings", "measure", "share", "mapped", "rename"),
    *("gate", "open", "collect", "abandon"),
)
PROBE = 512


class DeviceJudge(Judge):
    """The judge on one device; the gate stands between it and its contestants."""

    HANDLERS = (*Judge.HANDLERS, *EXTRA)
    device = torch.device("cuda")

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.gates = LaunchGates()

    def problem(self, frame: Frame) -> dict[str, Any]:
        """Load the problem, under the precision that both sides get."""
        torch.backends.cuda.matmul.allow_tf32 = frame.fields["tf32"]
        torch.backends.cudnn.allow_tf32 = frame.fields["tf32"]
        return super().problem(frame)

    def publish(self, frame: Frame) -> dict[str, Any]:
        """Write inputs, and answer when they are there: the side reads them at once."""
        return _finished(super().publish(frame))

    def publish_init(self, frame: Frame) -> dict[str, Any]:
        """Write the init inputs, and answer when they are there."""
        return _finished(super().publish_init(frame))

    def publish_weights(self, frame: Frame) -> dict[str, Any]:
        """Write the applied weights, and answer when they are there."""
        return _finished(super().publish_weights(frame))

    def probe(self, frame: Frame) -> dict[str, Any]:  # noqa: ARG002
        """Compute something whose result is known: whole numbers, so that it is exact."""
        ones = torch.ones(PROBE, PROBE, device="cuda")
        return {"right": bool(((ones @ ones) == PROBE).all())}

    def measure(self, frame: Frame) -> dict[str, Any]:
        """Run the reference once on a case; answer with the bytes that it and its outputs need."""
        fields = frame.fields
        args = self.reference.arguments(fields["params"], fields["seed"])
        layout = Layout()
        with reference.problem_step("laying out the inputs"):
            layout.describe(args)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        (outputs, _), flops = ceilings.counted(lambda: reference.run(self.reference, args, [], 0))
        peak = torch.cuda.max_memory_allocated() - before
        size = sum(value.numel() * value.element_size() for value in outputs)
        said = self.reference.declared("FLOPS", fields["params"])
        # Gradients are not asked for here, so theirs are not counted.
        counted = None if self.reference.grads else flops
        return {
            "moved": self.reference.declared("BYTES", fields["params"]),
            "inputs": layout.size,
            "weights": self._weights_bytes(),
            "outputs": size,
            "count": len(outputs),
            "peak": peak,
            "flops": counted if said is None else said,
            "precision": ceilings.precision_of(list(outputs)),
        }

    def _weights_bytes(self) -> int:
        model = self.reference.model
        values = [] if model is None else model.state_dict().values()
        return sum(value.numel() * value.element_size() for value in values)

    def ceilings(self, frame: Frame) -> dict[str, Any]:  # noqa: ARG002
        """Measure what the device can do at most."""
        try:
            return {**ceilings.measure(), "failed": ""}
        except RuntimeError as error:
            torch.cuda.empty_cache()
            return {"failed": str(error)[:300]}

    def share(self, frame: Frame) -> dict[str, Any]:
        """Allocate what a side is to map."""
        fields = frame.fields
        name = fields["runner"]
        shared = self.gates.share(name, fields["inputs"], fields["reserve"], fields["pool"])
        if name in self.runners:
            self.runners[name].inputs = self.gates.shared[name].inputs
        return shared

    def mapped(self, frame: Frame) -> dict[str, Any]:
        """Learn where a side has mapped its work block, before its candidate is there."""
        shared = self.gates.shared[frame.fields["runner"]]
        memory = DeviceMemory(shared.work, frame.fields["base"])
        self.runners[frame.fields["runner"]] = RunnerState(shared.inputs, memory)
        return {}

    def rename(self, frame: Frame) -> dict[str, Any]:
        """Call a side something else from now on."""
        old, new = frame.fields["runner"], frame.fields["to"]
        self.runners[new] = self.runners.pop(old)
        self.gates.shared[new] = self.gates.shared.pop(old)
        return {}

    def forget(self, frame: Frame) -> dict[str, Any]:
        """Forget sides, draws and snapshots, and free what sides had mapped."""
        answer = super().forget(frame)
        for name in frame.fields.get("runners", ()):
            self.gates.release(name)
        if frame.fields.get("all"):
            # It may idle for long, and others need the room.
            torch.cuda.empty_cache()
        return answer

    def gate(self, frame: Frame) -> dict[str, Any]:
        """Queue a call behind the closed gate, with the inputs of `publish`, if any.

        Room for the outputs of the draw `keep` is found before: behind the gate the allocator would
        wait for the device, and the device for the gate.
        """
        fields = frame.fields
        published = fields["publish"]
        if published is not None and published["perturb"] is not None:
            self.samples[published["sample"]].perturb(published["perturb"])

        def write_inputs() -> None:
            if published is not None:
                self._copy(published)

        if fields["keep"] is not None:
            self.snapshots.pop(fields["runner"], None)
            self.samples[fields["keep"]].preallocate_expected()
        self.gates.close(fields["runner"], fields["sequence"], write_inputs)
        return {}

    def open(self, frame: Frame) -> dict[str, Any]:  # noqa: ARG002
        """Open the gate for a call that could not be queued whole."""
        self.gates.open()
        return {}

    def abandon(self, frame: Frame) -> dict[str, Any]:
        """Give a call up whose contestant failed."""
        self.gates.abandon(frame.fields["runner"])
        return {}

    def collect(self, frame: Frame) -> dict[str, Any]:
        """Copy a call's outputs away as soon as it ends, and let it begin.

        With no draw nothing is copied, and the gate is opened all the same.
        """
        fields = frame.fields
        try:
            if fields["sample"] is not None:
                runner, sample = self.runners[fields["runner"]], self.samples[fields["sample"]]
                self.snapshots[fields["runner"]] = self._snapshot(
                    sample, runner, fields["addresses"]
                )
        finally:
            self.gates.open()
        return {}

    def timed(self, frame: Frame) -> dict[str, Any]:
        """Answer with the seconds of the call that was collected, and what was wrong with it."""
        fields = frame.fields
        seconds = self.gates.wait(fields["wait_s"])
        if seconds is None or fields["sample"] is None:
            return {"seconds": seconds, **self._answer(None, [], None)}
        return {"seconds": seconds, **super().timed(frame)}


def _finished(answer: dict[str, Any]) -> dict[str, Any]:
    torch.cuda.synchronize()
    return answer


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Say that it is ready, and judge on the device."""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    serve(channel, DeviceJudge(channel))
