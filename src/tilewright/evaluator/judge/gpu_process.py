"""The judge's process on a GPU: inputs, reference, launch gate and clock are on the device."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from tilewright.evaluator.judge import ceilings, reference
from tilewright.evaluator.judge.launch_gate import LaunchGate
from tilewright.evaluator.judge.memory_reader import DeviceMemory
from tilewright.evaluator.judge.process import Judge, serve
from tilewright.evaluator.judge.runner_state import RunnerState
from tilewright.evaluator.judge_client import messages
from tilewright.evaluator.judge_client.gpu_messages import (
    AbandonCall,
    CaseMeasured,
    CeilingsMeasured,
    CollectOutputs,
    MeasureCase,
    MeasureCeilings,
    MemoryMapped,
    OpenGate,
    Probe,
    ProbeAnswer,
    QueueCall,
    RenameRunner,
    SharedMemory,
    ShareMemory,
)
from tilewright.evaluator.judge_client.messages import (
    Answer,
    Done,
    FinishTimed,
    Forget,
    LoadProblem,
    PublishInit,
    PublishSample,
    PublishWeights,
    Request,
    TimedAnswer,
)
from tilewright.wire.frames import Channel
from tilewright.wire.tensors import Layout

PROBE_SIZE = 512
"""Rows and columns of the matrix of ones whose product checks the device: exact in float32."""


class DeviceJudge(Judge):
    """The judge of one device. Its launch gate decides when a queued call may begin."""

    device = torch.device("cuda")

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self.launch_gate = LaunchGate()

    def handlers(self) -> dict[type[Request[Any]], Callable[[Any], Answer]]:
        """Return the method that answers each request, those of a device included."""
        return {
            **super().handlers(),
            Probe: self.probe,
            MeasureCase: self.measure_case,
            MeasureCeilings: self.measure_ceilings,
            ShareMemory: self.share_memory,
            MemoryMapped: self.memory_mapped,
            RenameRunner: self.rename_runner,
            QueueCall: self.queue_call,
            OpenGate: self.open_gate,
            CollectOutputs: self.collect_outputs,
            AbandonCall: self.abandon_call,
        }

    def load_problem(self, message: LoadProblem) -> messages.ProblemLoaded:
        """Load the problem with the precision that candidate and baselines get."""
        torch.backends.cuda.matmul.allow_tf32 = message.tf32
        torch.backends.cudnn.allow_tf32 = message.tf32
        return super().load_problem(message)

    def publish_sample(self, message: PublishSample) -> Done:
        """Write inputs, and answer when they are written: the runner reads them at once."""
        super().publish_sample(message)
        torch.cuda.synchronize()
        return Done()

    def publish_init(self, message: PublishInit) -> Done:
        """Write the constructor's arguments, and answer when they are written."""
        super().publish_init(message)
        torch.cuda.synchronize()
        return Done()

    def publish_weights(self, message: PublishWeights) -> messages.WeightsPublished:
        """Write the applied weights, and answer when they are written."""
        answer = super().publish_weights(message)
        torch.cuda.synchronize()
        return answer

    def probe(self, message: Probe) -> ProbeAnswer:  # noqa: ARG002
        """Compute a product of whole numbers, which is exact."""
        ones = torch.ones(PROBE_SIZE, PROBE_SIZE, device="cuda")
        return ProbeAnswer(bool(((ones @ ones) == PROBE_SIZE).all()))

    def measure_case(self, message: MeasureCase) -> CaseMeasured:
        """Run the reference once on a case; answer with the bytes that it and its outputs need."""
        args = self.reference.arguments(message.params, message.seed)
        layout = Layout()
        with reference.problem_step("laying out the inputs"):
            layout.describe(args)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        (outputs, _), flops = ceilings.counted(lambda: reference.run(self.reference, args, [], 0))
        declared = self.reference.declared("FLOPS", message.params)
        # This call computes no gradients, so their operations are not counted.
        counted = None if self.reference.grads else flops
        return CaseMeasured(
            moved=self.reference.declared("BYTES", message.params),
            inputs=layout.size,
            weights=self._weights_bytes(),
            outputs=sum(value.numel() * value.element_size() for value in outputs),
            count=len(outputs),
            peak=torch.cuda.max_memory_allocated() - before,
            flops=counted if declared is None else declared,
            precision=ceilings.precision_of(list(outputs)),
        )

    def _weights_bytes(self) -> int:
        model = self.reference.model
        values = [] if model is None else model.state_dict().values()
        return sum(value.numel() * value.element_size() for value in values)

    def measure_ceilings(self, message: MeasureCeilings) -> CeilingsMeasured:  # noqa: ARG002
        """Measure what the device can do at most."""
        try:
            return ceilings.measure()
        except RuntimeError as error:
            torch.cuda.empty_cache()
            return CeilingsMeasured(failed=str(error)[:300])

    def share_memory(self, message: ShareMemory) -> SharedMemory:
        """Allocate what a runner is to map."""
        name = message.runner
        answer = self.launch_gate.share(name, message.inputs, message.reserve, message.pool)
        if name in self.runners:
            self.runners[name].inputs = self.launch_gate.shared[name].inputs
        return answer

    def memory_mapped(self, message: MemoryMapped) -> Done:
        """Learn where a runner has mapped its work block, before a candidate is loaded."""
        shared = self.launch_gate.shared[message.runner]
        memory = DeviceMemory(shared.work, message.base)
        self.runners[message.runner] = RunnerState(shared.inputs, memory)
        return Done()

    def rename_runner(self, message: RenameRunner) -> Done:
        """Know a runner by another name from now on."""
        old, new = message.runner, message.to
        self.runners[new] = self.runners.pop(old)
        self.launch_gate.shared[new] = self.launch_gate.shared.pop(old)
        return Done()

    def forget(self, message: Forget) -> Done:
        """Forget runners, samples and snapshots, and free what runners had mapped."""
        super().forget(message)
        for name in message.runners:
            self.launch_gate.release(name)
        if message.everything:
            # The judge may be idle for long, and others need the memory.
            torch.cuda.empty_cache()
        return Done()

    def queue_call(self, message: QueueCall) -> Done:
        """Queue a call behind the closed launch gate, with the inputs of `publish`, if any.

        The judge allocates memory for the outputs of the sample `keep` before it closes the gate.
        Behind the closed gate the allocator would wait for the device, and the device for the
        gate.
        """
        published = message.publish
        if published is not None and published.perturb is not None:
            self.samples[published.sample].perturb(published.perturb)

        def write_inputs() -> None:
            if published is not None:
                self._copy(published)

        if message.keep is not None:
            self.snapshots.pop(message.runner, None)
            self.samples[message.keep].preallocate_expected()
        self.launch_gate.close(message.runner, message.sequence, write_inputs)
        return Done()

    def open_gate(self, message: OpenGate) -> Done:  # noqa: ARG002
        """Open the launch gate for a call that could not be queued whole."""
        self.launch_gate.open()
        return Done()

    def abandon_call(self, message: AbandonCall) -> Done:
        """Give up a call whose runner failed."""
        self.launch_gate.abandon(message.runner)
        return Done()

    def collect_outputs(self, message: CollectOutputs) -> Done:
        """Queue the copy of a call's outputs for the moment in which it ends, and let it begin.

        Without a sample nothing is copied, and the gate is opened all the same.
        """
        try:
            if message.sample is not None:
                runner, sample = self.runners[message.runner], self.samples[message.sample]
                self.snapshots[message.runner] = self._snapshot(sample, runner, message.addresses)
        finally:
            self.launch_gate.open()
        return Done()

    def finish_timed(self, message: FinishTimed) -> TimedAnswer:
        """Answer with the seconds of the call that was collected, and what was wrong with it."""
        seconds = self.launch_gate.wait(message.wait_s)
        if seconds is None or message.sample is None:
            return TimedAnswer("", "", None, [], alias=False, seconds=seconds)
        return replace(super().finish_timed(message), seconds=seconds)


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Report the isolation layers, then answer requests on the device."""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    serve(channel, DeviceJudge(channel))
