"""The judge's process: it answers the supervisor's requests about one problem.

It owns seeds, inputs, the reference, expected values and the comparison. It runs the problem's
code, so it is sandboxed like a runner, but it never runs a candidate.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tilewright.evaluator.judge import (
    case_measurement,
    ceilings,
    degenerate_answers,
    inputs,
    output_memory,
    reference,
    soundness,
)
from tilewright.evaluator.judge.comparison import RIGHT, Mismatch, compare
from tilewright.evaluator.judge.earlier_outputs import EarlierOutputs
from tilewright.evaluator.judge.ignored_inputs import fill_ignored
from tilewright.evaluator.judge.index_ties import are_ties
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.memory_reader import (
    HostMemory,
    RunnerState,
    Span,
    write_layout,
)
from tilewright.evaluator.judge.nominal_errors import NominalErrors
from tilewright.evaluator.judge.number_formats import byte_size
from tilewright.evaluator.judge.official_comparison import compare_published
from tilewright.evaluator.judge.output_description import shape_mismatch
from tilewright.evaluator.judge.outputs_in_inputs import OutputsInInputs
from tilewright.evaluator.judge.overwritten_inputs import overwritten
from tilewright.evaluator.judge.reference_state import undisturbed
from tilewright.evaluator.judge.renewed_inputs import renew
from tilewright.evaluator.judge.repeated_comparison import compare_again
from tilewright.evaluator.judge.request_loop import answer_requests
from tilewright.evaluator.judge.timed_comparison import (
    TIMED_TOLERANCE_FACTOR,
    UNREADABLE,
    TimedComparison,
    compare_officially,
)
from tilewright.evaluator.judge.truncated_factors import Outputs
from tilewright.evaluator.judge.unchanged_outputs import UnchangedOutputs
from tilewright.evaluator.judge.varied_samples import make_varied_sample, try_variation
from tilewright.evaluator.judge.weight_loader import WeightLoader
from tilewright.evaluator.judge_client import messages, problem_messages
from tilewright.evaluator.judge_client.gpu_messages import (
    CaseMeasured,
    DescribeCall,
    MeasureCase,
    MeasureCeilings,
)
from tilewright.evaluator.judge_client.messages import (
    Answer,
    Done,
    PublishSample,
    Request,
)
from tilewright.wire.frames import Channel, Tree
from tilewright.wire.names import OutputMemory
from tilewright.wire.tensors import Layout, build, permuted_strides


class Judge:
    """State between requests, each of which one method answers. Lifetime: the process."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.runners: dict[str, RunnerState] = {}
        self.samples: dict[str, InputSample] = {}
        self.snapshots: dict[str, list[torch.Tensor | None]] = {}
        self.rule: messages.ComparisonRule | None = None
        self.writable: set[int] = set()
        self.nominal_errors = NominalErrors()
        self.unchanged = UnchangedOutputs()
        self.earlier = EarlierOutputs()

    def handlers(self) -> dict[type[Request[Any]], Callable[[Any], Answer]]:
        """Return the method that answers each request."""
        return {
            messages.LoadProblem: self.load_problem,
            messages.MapInputs: self.map_inputs,
            messages.Forget: self.forget,
            messages.PublishInit: self.publish_init,
            messages.ResetWeights: lambda message: self.weights.reset(message),
            messages.PlanWeights: lambda message: self.weights.plan(message),
            messages.MatchWeights: lambda message: self.weights.match(message),
            messages.ApplyWeights: lambda message: self.weights.apply(message),
            messages.PublishWeights: lambda message: self.weights.publish(message),
            messages.MakeSample: self.make_sample,
            PublishSample: self.publish_sample,
            messages.CheckOutputs: self.check_outputs,
            messages.RenewSample: self.renew_sample,
            messages.FinishTimed: self.finish_timed,
            MeasureCase: self.measure_case,
            DescribeCall: self.describe_call,
            MeasureCeilings: lambda message: ceilings.measure(self.device, message.threads),
            problem_messages.LintCase: lambda message: degenerate_answers.lint(
                self.reference, message
            ),
            problem_messages.TryVariation: lambda message: try_variation(self.reference, message),
            problem_messages.CheckHealth: lambda message: soundness.check(
                self.reference, message, self.rule
            ),
        }

    def load_problem(self, message: messages.LoadProblem) -> messages.ProblemLoaded:
        torch.set_num_threads(message.threads)
        source, fields = message.source.decode(), vars(message)
        self.reference = reference.load(source, fields, self.device, message.file)
        self.reference.written.with_returned = message.compares_overwritten
        self.rule = message.rule
        self.writable = set(self.reference.positions(message.writable_inputs))
        self.weights = WeightLoader(self.reference, self.runners, message.buffers)
        self.init_layout = Layout()
        with reference.problem_step("laying out the init inputs"):
            tree = self.init_layout.describe(self.reference.init)
        return messages.ProblemLoaded(tree, self.init_layout.size, self.reference.model is not None)

    def measure_case(self, message: MeasureCase) -> CaseMeasured:
        return case_measurement.measure_case(self.reference, message)

    def map_inputs(self, message: messages.MapInputs) -> Done:
        memory, maps, pages = message.fds
        there = HostMemory(memory, message.address, maps, pages)
        self.runners[message.runner] = RunnerState(there)
        return Done()

    def forget(self, message: messages.Forget) -> Done:
        for name in message.runners:
            runner = self.runners.pop(name, None)
            if runner is not None:
                runner.memory.close()
        for name in message.samples:
            self.samples.pop(name, None)
        if message.everything:
            self.samples.clear()
            self.earlier = EarlierOutputs()
        self.snapshots.clear()
        return Done()

    def publish_init(self, message: messages.PublishInit) -> Done:
        write_layout(self.runners[message.runner], self.init_layout, self.device)
        return Done()

    def make_sample(self, message: messages.MakeSample) -> messages.SampleLayout:
        given = (message.params, message.variation, message.seed, message.forward_seed)
        sample = make_varied_sample(self.reference, *given, double=self.rule is None)
        self.samples[message.sample] = sample
        if self.rule is None:
            fill_ignored(self.reference, sample, message.seed)
        if sample.variation == "nominal":
            self.nominal_errors.note(sample.expected)
        else:
            sample.expected = self.nominal_errors.floored(sample.expected)
        layout = self._layout_of(sample)
        if message.timed:
            sample.forget_values()
        return layout

    def describe_call(self, message: DescribeCall) -> messages.SampleLayout:
        given = (message.params, "nominal", message.seed, message.forward_seed)
        with undisturbed(self.reference):
            return self._layout_of(make_varied_sample(self.reference, *given, double=False))

    def _layout_of(self, sample: InputSample) -> messages.SampleLayout:
        outputs, output_bytes = inputs.described_outputs(sample)
        return messages.SampleLayout(
            tree=sample.tree,
            variation=sample.variation,
            grad_outputs=sample.grad_tree,
            grads=self.reference.positions(self.reference.grads),
            size=sample.size,
            outputs=outputs,
            output_bytes=output_bytes,
            structure=sample.structure,
            oracle=sample.oracle,
            random=sample.random,
            stateful=self.reference.stateful,
            skipped=sample.skipped,
            call_s=self.reference.call_s,
            ran_out_of_memory=reference.take_out_of_memory(self.reference),
            places=self._places_of(sample),
        )

    def renew_sample(self, message: messages.RenewSample) -> messages.SampleRenewed:
        sample = self.samples[message.sample]
        fresh = renew(
            self.reference,
            sample,
            message.seed,
            message.forward_seed,
            message.variation,
            varied=message.varied,
            base=message.base,
        )
        if self.rule is None:
            fill_ignored(self.reference, sample, message.seed)
        return messages.SampleRenewed(fresh, sample.tree)

    def publish_sample(self, message: PublishSample) -> messages.InputsWritten:
        """Write a master into the runner's inputs."""
        sample, runner = self.samples[message.sample], self.runners[message.runner]
        runner.last_base = message.base
        written = runner.memory.write_inputs(message.base, sample.image, sample.size)
        return messages.InputsWritten(written)

    def check_outputs(self, message: messages.CheckOutputs) -> messages.CallAnswer:
        sample = self.samples[message.sample]
        if self.rule is not None and self.rule["name"] == "runs":
            return _answer(RIGHT, None)
        difference, worst = self._shape_of(sample, message.outputs), None
        outputs = _contiguous(self.snapshots[message.runner])
        if difference is None:
            difference, worst = self._compare(sample, outputs)
            if self.rule is None and difference.kind == "values":
                compare_outputs = partial(self._compare, sample)
                again = compare_again(self.reference, sample, outputs, compare_outputs)
                difference, worst = again or (difference, worst)
        return self.earlier.marked(_answer(difference, worst), sample, outputs)

    def _compare(
        self, sample: InputSample, outputs: list[torch.Tensor | None]
    ) -> tuple[Mismatch, float | None]:
        """Return the first difference, and the worst error of what was compared."""
        difference, values = RIGHT, list[float]()
        for place, (item, output) in enumerate(zip(sample.expected, outputs, strict=True)):
            if output is None:
                difference = UNREADABLE
            elif self.rule is not None:
                difference = compare_published(item.value, output, self.rule)
            else:
                difference = compare(item, output)
                known = self.reference, sample, place, item.value
                if difference.kind and are_ties(*known, output):
                    difference = RIGHT
            if difference.error_over_tolerance is not None:
                values.append(difference.error_over_tolerance)
            if difference.kind:
                break
        return difference, max(values) if values else None

    def finish_timed(self, message: messages.FinishTimed) -> messages.TimedAnswer:
        assert message.sample is not None
        sample, runner = self.samples[message.sample], self.runners[message.runner]
        windows = [[0, sample.size]] if message.look is None else message.look
        seen = runner.memory.inputs(message.base, sample.size, windows)
        mutated = overwritten(sample, *seen, self.writable, windows)
        spans = self._spans_of(sample, message)
        # Before anything reads the outputs: to read pages that nobody wrote makes them.
        ready = sum(map(runner.memory.unwritten_bytes, spans.values())) if message.keep else None
        misplaced, inside = self._misplaced(sample, runner, message, spans)
        output_memory.note_outputs(runner, sample.values(), message.addresses, message.permuted)
        if message.keep:
            self.snapshots[message.runner] = self._snapshot(sample, runner)
        if message.expect:
            args, grads = sample.arguments(), sample.grad_outputs()
            seed = sample.forward_seed
            values, _ = reference.run(self.reference, args, grads, seed, sample.after.written)
            self.snapshots["eager"] = list(values)
        difference, centers, unchanged, seconds = None, None, None, 0.0
        if message.compare:
            outputs, centers = self._timed_outputs(sample)
            # On a device the judge sees what lies ready (`ready_outputs`).
            on_cpu = self.device.type == "cpu"
            unchanged = self.unchanged.unchanged_bytes(centers) if on_cpu else None
            difference = self._compare_timed(sample, outputs, centers)
            if difference is None and message.as_checked and self.rule is None:
                start = time.perf_counter()
                difference = self._timed_comparison().as_checked(sample, outputs)
                seconds = time.perf_counter() - start
        if self.rule is None and inside.were_right(centers, TIMED_TOLERANCE_FACTOR):
            misplaced.add(OutputMemory.INPUT)
        answer = _answer(difference, None, mutated, sorted(misplaced))
        return messages.TimedAnswer(
            **vars(answer), ready_bytes=ready, unchanged_bytes=unchanged, as_checked_s=seconds
        )

    def _spans_of(self, sample: InputSample, message: messages.FinishTimed) -> dict[int, Span]:
        sizes = [byte_size(item.value) for item in sample.expected]
        return output_memory.spans_of(message.addresses, sizes)

    def _misplaced(
        self,
        sample: InputSample,
        runner: RunnerState,
        message: messages.FinishTimed,
        spans: dict[int, Span],
    ) -> tuple[set[OutputMemory], OutputsInInputs]:
        """Return where outputs lie in memory that their caller could not keep."""
        placement = self.reference.placement
        outputs = runner.outputs.items()
        runner.outputs = {call: where for call, where in outputs if call in message.held}
        found = output_memory.misplaced(runner, spans, placement)
        inside = OutputsInInputs(sample, runner.memory, message.base, spans, placement)
        if inside.are_misplaced(self.writable):
            found.add(OutputMemory.INPUT)
        runner.outputs[message.call] = spans
        output_memory.give_back(runner, message.dropped, placement)
        return found, inside

    def _timed_outputs(
        self, sample: InputSample
    ) -> tuple[list[torch.Tensor | None], list[torch.Tensor | None]]:
        """Return what the candidate returned, and what it is compared with."""
        outputs = _contiguous(self.snapshots.pop("candidate"))
        centers = self.snapshots.pop("eager", None)
        if centers is None:
            # It still holds them. They are read only now: the time until the candidate's call must
            # not tell whether that call is compared.
            centers = _contiguous(self._snapshot(sample, self.runners["eager"]))
        return outputs, centers

    def _compare_timed(
        self, sample: InputSample, outputs: Outputs, centers: Outputs
    ) -> Mismatch | None:
        if self.rule is not None:
            rule = self.rule
            return compare_officially(
                outputs, centers, lambda center, output: compare_published(center, output, rule)
            )
        return self._timed_comparison().difference(sample, outputs, centers)

    def _timed_comparison(self) -> TimedComparison:
        return TimedComparison(self.reference, self.nominal_errors, self._compare)

    def _shape_of(self, sample: InputSample, outputs: list[Tree]) -> Mismatch | None:
        on_host = self.reference.placement.on_host
        devices = ["cpu" if p in on_host else self.device.type for p in range(len(outputs))]
        expected = sample.expected[: sample.after.returned]
        return shape_mismatch(expected, sample.structure, outputs, devices)

    def _places_of(self, sample: InputSample) -> messages.OutputPlaces:
        """Return how outputs may lie, besides contiguous and in memory of their own."""
        placement, written = self.reference.placement, self.writable | sample.after.overwrites
        returned = sample.expected[: sample.after.returned]
        return messages.OutputPlaces(
            aliases=bool(placement.aliases | written),
            writable=[[start, stop] for start, stop, index in sample.names if index in written],
            shared=[list(pair) for pair in sorted(placement.shares_outputs)],
            strides=[permuted_strides(item.value) for item in returned],
        )

    def _snapshot(self, sample: InputSample, runner: RunnerState) -> list[torch.Tensor | None]:
        """Copy the outputs of a runner's last call, and the inputs that are outputs.

        Shape and dtype are those expected. The runner names the address of each returned output.
        Inputs lie where the judge wrote them.
        """
        returned = zip(sample.expected[: sample.after.returned], runner.last, strict=True)
        found = [
            runner.memory.read(address, item.value, permuted=place in runner.permuted)
            for place, (item, address) in enumerate(returned)
        ]
        if not sample.after.written:
            return found
        places = [
            [start, stop] for start, stop, index in sample.names if index in sample.after.written
        ]
        arena, base = runner.memory.inputs(runner.last_base, sample.size, places)
        left = sample.written_tensors(list(build(sample.tree, arena, base)))
        return [*found, *(value.clone() for value in left)]


def _contiguous(outputs: list[torch.Tensor | None]) -> list[torch.Tensor | None]:
    return [None if value is None else value.contiguous() for value in outputs]


def _answer(
    difference: Mismatch | None,
    worst: float | None,
    mutated: list[str] | None = None,
    misplaced: list[OutputMemory] | None = None,
) -> messages.CallAnswer:
    difference = difference or RIGHT
    error = difference.error_over_tolerance if difference.kind else worst
    if error is not None and not error < float("inf"):
        error = None
    return messages.CallAnswer(
        difference.kind, difference.message, error, mutated or [], misplaced or []
    )


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Report the isolation layers, then answer requests until the supervisor is gone."""
    channel = Channel(sock)
    answer_requests(channel, applied, Judge().handlers(), channel.receive)
