"""The judge's process on a GPU: inputs, reference, launch gate and clock are on the device."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from tilewright.evaluator.judge import case_measurement, output_memory, process, reference
from tilewright.evaluator.judge.autotuned_kernels import take_first_configuration
from tilewright.evaluator.judge.kernel_compilation import AnnouncedCompilation
from tilewright.evaluator.judge.launch_gate import LaunchGate
from tilewright.evaluator.judge.memory_reader import DeviceMemory, RunnerState
from tilewright.evaluator.judge.ready_outputs import ReadyOutputs, places_of
from tilewright.evaluator.judge.request_loop import answer_requests
from tilewright.evaluator.judge_client import gpu_messages, messages
from tilewright.evaluator.judge_client.messages import Answer, Done, Request
from tilewright.wire.frames import Channel

LARGE_SAMPLE_BYTES = 1 << 30
"""Size of inputs from which on new values of them may leave much memory in torch's cache."""
PROBE_SIZE = 512
"""Rows and columns of the matrix of ones whose product checks the device: exact in float32."""


class DeviceJudge(process.Judge):
    """The judge of one device. Its launch gate decides when a queued call may begin."""

    device = torch.device("cuda")

    def __init__(self, compilation: AnnouncedCompilation) -> None:
        super().__init__()
        self.compilation = compilation
        self.launch_gate = LaunchGate()
        self.ready_outputs = ReadyOutputs(self.device)

    def handlers(self) -> dict[type[Request[Any]], Callable[[Any], Answer]]:
        """Return the method that answers each request, those of a device included."""
        known = super().handlers()
        for kind in (messages.PublishSample, messages.PublishInit, messages.PublishWeights):
            known[kind] = _synchronized(known[kind])
        for other in (messages.MakeSample, messages.CheckOutputs):
            known[other] = self._emptying_cache(known[other])
        return known | {
            gpu_messages.Probe: self.probe,
            gpu_messages.ReleaseDevice: self.release_device,
            gpu_messages.ShareMemory: self.share_memory,
            gpu_messages.MemoryMapped: self.memory_mapped,
            gpu_messages.RenameRunner: self.rename_runner,
            gpu_messages.ForbidTf32: self.forbid_tf32,
            gpu_messages.QueueCall: self.queue_call,
            gpu_messages.OpenGate: self.open_gate,
            gpu_messages.CollectOutputs: self.collect_outputs,
            gpu_messages.AbandonCall: self.abandon_call,
        }

    def load_problem(self, message: messages.LoadProblem) -> messages.ProblemLoaded:
        # The precision that candidate and baselines get.
        torch.backends.cuda.matmul.allow_tf32 = message.tf32
        torch.backends.cudnn.allow_tf32 = message.tf32
        if b"triton" in message.source:
            from triton import compiler
            from triton.runtime import autotuner

            take_first_configuration(autotuner.Autotuner)
            self.compilation.announce(compiler)
        loaded = super().load_problem(message)
        self.reference.precision.allows_tf32 = message.tf32
        return loaded

    def forbid_tf32(self, _: gpu_messages.ForbidTf32) -> Done:
        # An operator with a product inside would be more exact here than in a runner, or less.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.reference.precision.allows_tf32 = False
        return Done()

    def release_device(self, _: gpu_messages.ReleaseDevice) -> Done:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        return Done()

    def probe(self, _: gpu_messages.Probe) -> gpu_messages.ProbeAnswer:
        ones = torch.ones(PROBE_SIZE, PROBE_SIZE, device="cuda")
        return gpu_messages.ProbeAnswer(bool(((ones @ ones) == PROBE_SIZE).all()))

    def measure_case(self, message: gpu_messages.MeasureCase) -> gpu_messages.CaseMeasured:
        before = 0

        def started() -> None:
            nonlocal before
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()

        found = case_measurement.measure_case(self.reference, message, started)
        return replace(found, peak=torch.cuda.max_memory_allocated() - before)

    def _emptying_cache(self, handler: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
        """Wrap a handler: the judge empties its cache afterwards if little memory is free.

        An answer about a comparison says whether an oracle ran out of memory.
        """

        def handle(message: Request[Any]) -> Answer:
            answer = handler(message)
            self.launch_gate.empty_cache_if_low()
            if isinstance(answer, messages.CallAnswer):
                lacked = reference.take_out_of_memory(self.reference)
                answer = replace(answer, ran_out_of_memory=lacked)
            return answer

        return handle

    def share_memory(self, message: gpu_messages.ShareMemory) -> gpu_messages.SharedMemory:
        memory = self.launch_gate.share(
            message.runner, message.inputs, message.reserve, message.pool
        )
        self.ready_outputs.load_kernels(places_of(self.launch_gate.shared[message.runner].work))
        return memory

    def memory_mapped(self, message: gpu_messages.MemoryMapped) -> Done:
        shared, known = self.launch_gate.shared[message.runner], self.runners.get(message.runner)
        if known is None:
            memory = DeviceMemory(
                shared.inputs, shared.work, message.base, shared.reserve, message.inputs
            )
            self.runners[message.runner] = RunnerState(memory)
            return Done()
        # This runner already has a candidate. It has only mapped a larger input block.
        assert isinstance(known.memory, DeviceMemory)
        known.memory = replace(known.memory, input_block=shared.inputs, inputs_base=message.inputs)
        return Done()

    def rename_runner(self, message: gpu_messages.RenameRunner) -> Done:
        old, new = message.runner, message.to
        self.runners[new] = self.runners.pop(old)
        self.launch_gate.shared[new] = self.launch_gate.shared.pop(old)
        return Done()

    def forget(self, message: messages.Forget) -> Done:
        super().forget(message)
        for name in message.runners:
            self.launch_gate.release(name)
        if message.everything:
            # The judge may be idle for long, and others need the memory.
            torch.cuda.empty_cache()
        return Done()

    def queue_call(self, message: gpu_messages.QueueCall) -> Done:
        published = message.publish

        def write_inputs() -> None:
            if published is not None:
                self.publish_sample(published)

        if message.keep is not None:
            # Behind the closed gate the allocator would wait for the device, and that for the gate.
            self.snapshots.pop(message.runner, None)
            self.samples[message.keep].preallocate_expected()
        self.launch_gate.close(message.runner, message.sequence, write_inputs, self.ready_outputs)
        return Done()

    def open_gate(self, _: gpu_messages.OpenGate) -> Done:
        self.launch_gate.open()
        return Done()

    def abandon_call(self, message: gpu_messages.AbandonCall) -> Done:
        self.launch_gate.abandon(message.runner)
        return Done()

    def collect_outputs(self, message: gpu_messages.CollectOutputs) -> Done:
        try:
            if message.sample is not None:
                runner, sample = self.runners[message.runner], self.samples[message.sample]
                expected = sample.values()
                output_memory.note_outputs(runner, expected, message.addresses, message.permuted)
                self.snapshots[message.runner] = self._snapshot(sample, runner)
                work = self.launch_gate.shared[message.runner].work
                self.ready_outputs.read_after(places_of(work))
        finally:
            self.launch_gate.open()
        return Done()

    def finish_timed(self, message: messages.FinishTimed) -> messages.TimedAnswer:
        # The supervisor sends nothing before the answer, unless it abandons the call.
        seconds = self.launch_gate.wait(message.wait_s, self.compilation.has_request)
        if seconds is None or message.sample is None:
            return messages.TimedAnswer("", "", None, [], [], seconds=seconds)
        ready = self._ready_bytes(message) if message.compare else None
        answer = replace(super().finish_timed(message), seconds=seconds, ready_bytes=ready)
        if not message.compare:
            return answer
        self.launch_gate.empty_cache_if_low()
        return replace(answer, ran_out_of_memory=reference.take_out_of_memory(self.reference))

    def renew_sample(self, message: messages.RenewSample) -> messages.SampleRenewed:
        renewed = super().renew_sample(message)
        if self.samples[message.sample].size > LARGE_SAMPLE_BYTES:
            self.launch_gate.empty_cache_if_low()
        return renewed

    def _ready_bytes(self, message: messages.FinishTimed) -> int:
        """Return the bytes of a call's outputs that lay in its runner's memory before."""
        assert message.sample is not None
        memory = self.runners[message.runner].memory
        assert isinstance(memory, DeviceMemory)
        spans = self._spans_of(self.samples[message.sample], message).values()
        return self.ready_outputs.ready_bytes(
            (start - memory.base, stop - memory.base) for start, stop in spans
        )


def _synchronized(handler: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    """Wrap a handler: the judge synchronizes before it answers, as the runner reads at once."""

    def handle(message: Request[Any]) -> Answer:
        answer = handler(message)
        torch.cuda.synchronize()
        return answer

    return handle


def _enable_expandable_segments() -> None:
    """Enable expandable segments in torch's allocator.

    Otherwise a small tensor keeps the free rest of its segment from large tensors. The judge then
    runs out of memory on a device that is nearly full.
    """
    own: Any = torch._C
    settings = "expandable_segments:True"
    if hasattr(own, "_accelerator_setAllocatorSettings"):
        own._accelerator_setAllocatorSettings(settings)
    else:
        torch.cuda.memory._set_allocator_settings(settings)


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Report the isolation layers, then answer requests on the device."""
    channel = Channel(sock)
    _enable_expandable_segments()
    compilation = AnnouncedCompilation(channel, torch.cuda.synchronize)
    answer_requests(channel, applied, DeviceJudge(compilation).handlers(), compilation.receive)
