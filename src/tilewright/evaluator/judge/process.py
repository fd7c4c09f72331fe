"""The judge's process: it answers the supervisor's requests about one problem.

It owns seeds, inputs, the reference, expected values and the comparison. It runs the problem's
code, so it is sandboxed like a runner, but it never runs a candidate.
"""

from __future__ import annotations

import mmap
import os
import socket
from collections.abc import Callable
from typing import Any

import torch

from tilewright.evaluator.judge import (
    degenerate_answers,
    delayed_inputs,
    inputs,
    reference,
    soundness,
)
from tilewright.evaluator.judge.comparison import RIGHT, Mismatch, compare, describe_mismatch
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.integer_comparison import names_ties
from tilewright.evaluator.judge.memory_reader import HostMemory, RunnerState
from tilewright.evaluator.judge.official_comparison import compare_published
from tilewright.evaluator.judge.reference import ProblemFailure
from tilewright.evaluator.judge.varied_samples import make_varied_sample
from tilewright.evaluator.judge.weight_loader import WeightLoader
from tilewright.evaluator.judge_client import messages
from tilewright.evaluator.judge_client.messages import (
    Answer,
    Done,
    ProblemFailed,
    PublishSample,
    Request,
)
from tilewright.wire.frames import Channel, ChannelClosed, FrameError, Tree
from tilewright.wire.tensors import Layout, elements

UNREADABLE = Mismatch("values", "its output cannot be read from its memory")
TIMED_TOLERANCE_FACTOR = 2.0
"""Factor by which the tolerance of timed calls is larger. They are compared with the baseline's
outputs, which have rounding errors of their own."""
MAX_STRUCTURE_CHARACTERS = 200
"""Most characters of the description of nested outputs that are compared."""


class Judge:
    """State between requests, each of which one method answers. Lifetime: the process."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.runners: dict[str, RunnerState] = {}
        self.samples: dict[str, InputSample] = {}
        self.snapshots: dict[str, list[torch.Tensor | None]] = {}
        self.rule: messages.ComparisonRule | None = None
        self.writable: set[int] = set()

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
            messages.WriteDelayed: self.write_delayed,
            messages.FinishTimed: self.finish_timed,
            messages.LintCase: lambda message: degenerate_answers.lint(self.reference, message),
            messages.CheckHealth: lambda message: soundness.check(
                self.reference, message, self.rule
            ),
        }

    def load_problem(self, message: messages.LoadProblem) -> messages.ProblemLoaded:
        torch.set_num_threads(message.threads)
        self.reference = reference.load(message.source.decode(), vars(message), self.device)
        self.rule = message.rule
        self.writable = set(self.reference.positions(message.writable_inputs))
        self.weights = WeightLoader(self.reference, self.runners)
        self.init_layout = Layout()
        with reference.problem_step("laying out the init inputs"):
            tree = self.init_layout.describe(self.reference.init)
        is_module = self.reference.model is not None
        return messages.ProblemLoaded(tree, self.init_layout.size, is_module)

    def map_inputs(self, message: messages.MapInputs) -> Done:
        arena = mmap.mmap(message.fds[0], message.inputs)
        os.close(message.fds[0])
        known = self.runners.get(message.runner)
        if known is not None:
            known.inputs = arena
        else:
            memory = HostMemory(message.fds[1], message.input_copy, message.fds[2])
            self.runners[message.runner] = RunnerState(arena, memory)
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
        self.snapshots.clear()
        return Done()

    def publish_init(self, message: messages.PublishInit) -> Done:
        self.init_layout.write(self.runners[message.runner].inputs)
        return Done()

    def make_sample(self, message: messages.MakeSample) -> messages.SampleLayout:
        sample = make_varied_sample(
            self.reference,
            message.params,
            message.variation,
            message.seed,
            message.forward_seed,
            double=self.rule is None,
        )
        self.samples[message.sample] = sample
        outputs, output_bytes = inputs.described_outputs(sample)
        if message.timed:
            sample.forget_values()
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
            aliases=self.reference.aliases or bool(self.writable | sample.overwrites),
            movable=len(sample.movable),
        )

    def publish_sample(self, message: PublishSample) -> Done:
        self.perturb(message)
        self.copy_sample(message)
        return Done()

    def perturb(self, message: PublishSample) -> None:
        """Change the master of a sample, if the message asks for that."""
        if message.perturb is not None:
            self.samples[message.sample].perturb(message.perturb)

    def copy_sample(self, message: PublishSample) -> None:
        """Write a master into its slot."""
        sample, runner = self.samples[message.sample], self.runners[message.runner]
        into = elements(runner.inputs, torch.uint8, sample.size, message.base)
        into.copy_(elements(sample.image, torch.uint8, sample.size))
        if message.late is not None and runner.memory.writable:
            delayed_inputs.hide(sample, runner.inputs, message.base, message.late)

    def write_delayed(self, message: messages.WriteDelayed) -> messages.DelayedWritten:
        sample, runner = self.samples[message.sample], self.runners[message.runner]
        given = (sample, runner.inputs, runner.memory, message.base, message.late)
        written = not runner.memory.writable or delayed_inputs.write_delayed(*given)
        return messages.DelayedWritten(written)

    def check_outputs(self, message: messages.CheckOutputs) -> messages.CallAnswer:
        sample, runner = self.samples[message.sample], self.runners[message.runner]
        mutated = inputs.overwritten(sample, runner.inputs, message.base, self.writable)
        if self.rule is not None and self.rule["name"] == "runs":
            return _answer(RIGHT, mutated, None)
        difference, worst = self._shape_of(sample, message.outputs), None
        if difference is None:
            places = [item.get("address", 0) for item in message.outputs]
            outputs = self._snapshot(sample, runner, places)
            difference, worst = self._compare(sample, outputs)
            wrong = self.rule is None and difference.kind == "values"
            if wrong and inputs.widen_tolerance(self.reference, sample):
                difference, worst = self._compare(sample, outputs)
        return _answer(difference, mutated, worst)

    def _compare(
        self, sample: InputSample, outputs: list[torch.Tensor | None]
    ) -> tuple[Mismatch, float | None]:
        """Return the first difference, and the worst error of what was compared."""
        difference, values = RIGHT, list[float]()
        for item, output in zip(sample.expected, outputs, strict=True):
            if output is None:
                difference = UNREADABLE
            elif self.rule is not None:
                difference = compare_published(item.value, output, self.rule)
            else:
                difference = compare(item, output)
                if difference.kind and names_ties(item.value, output, sample.tensors()):
                    difference = RIGHT
            if difference.error_over_tolerance is not None:
                values.append(difference.error_over_tolerance)
            if difference.kind:
                break
        return difference, max(values) if values else None

    def finish_timed(self, message: messages.FinishTimed) -> messages.TimedAnswer:
        assert message.sample is not None
        sample, runner = self.samples[message.sample], self.runners[message.runner]
        mutated = inputs.overwritten(sample, runner.inputs, message.base, self.writable)
        if runner.memory.differs(message.base, sample.image, message.look):
            mutated.append("the inputs of a timed call")
        alias = any(
            runner.memory.holds(address, len(runner.inputs)) for address in message.addresses
        )
        if message.keep:
            self.snapshots[message.runner] = self._snapshot(sample, runner, message.addresses)
        if message.expect:
            args, grads = sample.arguments(), sample.grad_outputs()
            values, _ = reference.run(self.reference, args, grads, sample.forward_seed)
            self.snapshots["eager"] = list(values)
        difference = self._compare_timed(sample) if message.compare else None
        if message.next is not None:
            self.publish_sample(message.next)
        return messages.TimedAnswer(**vars(_answer(difference, mutated, None, alias=alias)))

    def _compare_timed(self, sample: InputSample) -> Mismatch | None:
        outputs, centers = self.snapshots.pop("candidate"), self.snapshots.pop("eager")
        for item, output, center in zip(sample.expected, outputs, centers, strict=True):
            if output is None or center is None:
                difference = UNREADABLE
            elif self.rule is not None:
                difference = compare_published(center, output, self.rule)
            else:
                difference = compare(item, output, center, TIMED_TOLERANCE_FACTOR)
                if difference.kind and names_ties(center, output, sample.tensors()):
                    continue
            strict = self.rule is None and difference is not UNREADABLE
            if difference.kind == "values" and strict:
                # Only now is the tolerance of ill-conditioned inputs computed.
                fresh = inputs.resample_expected(self.reference, sample)
                if fresh is not None and not self._compare(fresh, outputs)[0].kind:
                    return None
            if difference.kind:
                return difference
        return None

    def _shape_of(self, sample: InputSample, outputs: list[Tree]) -> Mismatch | None:
        if len(outputs) != len(sample.expected):
            message = f"expected {len(sample.expected)} outputs, got {len(outputs)}"
            return Mismatch("count", message)
        found = outputs[0].get("structure", "1") if outputs else "1"
        expected = sample.structure[:MAX_STRUCTURE_CHARACTERS]
        # A single value is also accepted for a dict of one: the C ABI has no dicts.
        if found != expected and not (found.isdigit() and "," not in expected):
            return Mismatch("count", f"expected {_shown(expected)}, got {_shown(found)}")
        for item, described in zip(sample.expected, outputs, strict=True):
            mismatch = describe_mismatch(item, described)
            if mismatch is not None:
                return mismatch
        return None

    def _snapshot(
        self, sample: InputSample, runner: RunnerState, places: list[int]
    ) -> list[torch.Tensor | None]:
        """Copy outputs; shape and dtype are those expected, the runner names only the address."""
        return [
            runner.memory.read(address, item.value)
            for item, address in zip(sample.expected, places, strict=True)
        ]


def _answer(
    difference: Mismatch | None, mutated: list[str], worst: float | None, *, alias: bool = False
) -> messages.CallAnswer:
    difference = difference or RIGHT
    error = difference.error_over_tolerance if difference.kind else worst
    if error is not None and not error < float("inf"):
        error = None
    return messages.CallAnswer(difference.kind, difference.message, error, mutated, alias)


def _shown(structure: str) -> str:
    return "no dict" if structure.isdigit() else f"a dict of {structure}"


def main(sock: socket.socket, applied: dict[str, str], kind: type[Judge] = Judge) -> None:
    """Report the isolation layers, then answer requests until the supervisor is gone."""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    handlers = kind().handlers()
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        request = messages.decode(frame)
        try:
            channel.send("answer", vars(handlers[type(request)](request)))
            continue
        except ProblemFailure as error:
            failed = ProblemFailed(str(error), error.out_of_memory)
        except torch.OutOfMemoryError as error:
            text = f"{frame.kind}: it needs more memory than the device has: {str(error)[:300]}"
            failed = ProblemFailed(text, out_of_memory=True)
        except FrameError as error:
            text = f"it has more tensors or values than a frame can name: {error}"
            failed = ProblemFailed(text, out_of_memory=False)
        channel.send(messages.PROBLEM_FAILED, vars(failed))
