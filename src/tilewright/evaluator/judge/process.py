"""The judge's process: answers the supervisor's frames, one problem a process."""

from __future__ import annotations

import json
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
    weights,
)
from tilewright.evaluator.judge.comparison import RIGHT, Mismatch, compare, describe_mismatch
from tilewright.evaluator.judge.inputs import InputSample
from tilewright.evaluator.judge.memory_reader import HostMemory
from tilewright.evaluator.judge.official_comparison import compare_published
from tilewright.evaluator.judge.reference import ProblemFailure
from tilewright.evaluator.judge.runner_state import RunnerState
from tilewright.wire.frames import Channel, ChannelClosed, Frame, FrameError
from tilewright.wire.tensors import DTYPES, Layout, elements

UNREADABLE = Mismatch("values", "its output cannot be read from its memory", None)
TIMED_SLACK = 2.0
"""Timed calls are compared with the baseline's own rounding, so the bound is doubled."""


class Judge:
    """State between frames; its lifetime is the process."""

    HANDLERS: tuple[str, ...] = (
        *("problem", "map", "forget", "publish_init", "reset_weights", "plan_weights"),
        *("match_weights", "apply_weights", "publish_weights", "sample", "publish", "check"),
        *("reveal", "timed", "lint"),
    )
    device = torch.device("cpu")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.runners: dict[str, RunnerState] = {}
        self.samples: dict[str, InputSample] = {}
        self.snapshots: dict[str, list[torch.Tensor | None]] = {}
        self.fresh: dict[str, torch.Tensor] = {}
        self.seeded: dict[str, torch.Tensor] = {}
        self.rule: dict[str, Any] | None = None
        self.donated: set[int] = set()

    def problem(self, frame: Frame) -> dict[str, Any]:
        """Load the problem; answer with the tree of its init inputs."""
        fields = frame.fields
        torch.set_num_threads(fields["threads"])
        self.reference = reference.load(frame.body.decode(), fields, self.device)
        self.rule = fields["rule"]
        self.donated = set(self.reference.positions(fields["donates"]))
        self.fresh = {}
        layout = Layout()
        with reference.problem_step("laying out the init inputs"):
            self.init_tree = layout.describe(self.reference.init)
        self.init_layout = layout
        model = self.reference.model
        if model is not None:
            self.seeded = {name: v.detach().clone() for name, v in model.state_dict().items()}
        return {"init": self.init_tree, "init_bytes": layout.size, "module": model is not None}

    def map(self, frame: Frame) -> dict[str, Any]:
        """Map a side's input arena, keeping what is known of it; the first time take its memory."""
        fields = frame.fields
        arena = mmap.mmap(frame.fds[0], fields["inputs"])
        os.close(frame.fds[0])
        old = self.runners.get(fields["runner"])
        if old is not None:
            old.inputs = arena
        else:
            memory = HostMemory(frame.fds[1], fields["input_copy"], frame.fds[2])
            self.runners[fields["runner"]] = RunnerState(arena, memory)
        return {}

    def forget(self, frame: Frame) -> dict[str, Any]:
        """Forget sides and draws by name, or all draws, and every snapshot."""
        for name in frame.fields.get("runners", ()):
            runner = self.runners.pop(name, None)
            if runner is not None:
                runner.memory.close()
        for name in frame.fields.get("samples", ()):
            self.samples.pop(name, None)
        if frame.fields.get("all"):
            self.samples.clear()
        self.snapshots.clear()
        return {}

    def publish_init(self, frame: Frame) -> dict[str, Any]:
        """Write the init inputs' tensors into a side's arena."""
        self.init_layout.write(self.runners[frame.fields["runner"]].inputs)
        return {}

    def reset_weights(self, frame: Frame) -> dict[str, Any]:  # noqa: ARG002
        """Give the reference back the weights of its init seed; forget what sides can hold."""
        if self.reference.model is not None:
            self.reference.model.load_state_dict(self.seeded)
            self.reference.forget_double()
        self.fresh = {}
        return {}

    def plan_weights(self, frame: Frame) -> dict[str, Any]:
        """Match a side's weights with ours; answer with names whose values must be read."""
        model = self.reference.model
        runner = self.runners[frame.fields["runner"]]
        runner.entries = json.loads(frame.body) if frame.body else []
        if model is None:
            return {"need": [], "count": 0}
        if not self.fresh:
            self.fresh = weights.resample(model, frame.fields["seed"])
        runner.mapping = weights.named_alike(self.fresh, runner.entries)
        return {
            "need": weights.unmatched(self.fresh, runner.entries),
            "count": len(self.fresh),
        }

    def match_weights(self, frame: Frame) -> dict[str, Any]:
        """Match by value the weights of a side that lie at the given places."""
        runner = self.runners[frame.fields["runner"]]
        described = {name: (shape, kind) for name, shape, kind in runner.entries}
        known = set(runner.mapping.values())
        left = {name: self.seeded[name] for name in self.fresh if name not in known}
        for name, address in zip(frame.fields["names"], frame.fields["addresses"], strict=False):
            shape, kind = described[name]
            like = torch.empty(shape, dtype=DTYPES[kind], device=self.device)
            # One after the other: of thousands that share their memory each would be a copy.
            value = runner.memory.read(address, like)
            ours = None if value is None else weights.valued_alike(value, left)
            if ours is not None:
                runner.mapping[name] = ours
                del left[ours]
        return {}

    def apply_weights(self, frame: Frame) -> dict[str, Any]:
        """Give the reference the new weights that all `runners` can hold; answer with the others.

        Constants are redrawn in any case: a default that does nothing may not be skipped.
        """
        model = self.reference.model
        if model is None:
            return {"lacking": [], "bytes": 0}
        held = [set(self.runners[name].mapping.values()) for name in frame.fields["runners"]]
        common = set(self.fresh).intersection(*held)
        lacking = sorted(set(self.fresh) - common)
        self.applied = {
            name: value
            for name, value in self.fresh.items()
            if name in common or weights.is_constant(self.seeded[name])
        }
        model.load_state_dict(self.seeded)
        # By itself: of two names of one tied weight only the first is drawn anew.
        model.load_state_dict(self.applied, strict=False)
        self.reference.forget_double()
        layout = Layout()
        layout.describe(self.applied)
        return {"lacking": lacking, "bytes": layout.size}

    def publish_weights(self, frame: Frame) -> dict[str, Any]:
        """Write the applied weights into a side's arena, under the side's own names."""
        runner = self.runners[frame.fields["runner"]]
        layout = Layout()
        tree = layout.describe(
            {
                theirs: self.applied[ours]
                for theirs, ours in runner.mapping.items()
                if ours in self.applied
            }
        )
        layout.write(runner.inputs)
        return {"tree": tree}

    def sample(self, frame: Frame) -> dict[str, Any]:
        """Draw inputs and what is expected of them; answer with their layout, not their values."""
        fields = frame.fields
        given = [fields[name] for name in ("params", "variation", "seed", "forward_seed")]
        sample = inputs.make_sample(self.reference, *given, double=self.rule is None)
        self.samples[fields["sample"]] = sample
        outputs, output_bytes = inputs.described_outputs(sample)
        if fields["timed"]:
            sample.forget_values()
        return {
            "tree": sample.tree,
            "grad_outputs": sample.grad_tree,
            "grads": self.reference.grad_indices(),
            "size": sample.size,
            "outputs": outputs,
            "output_bytes": output_bytes,
            "structure": sample.structure,
            "oracle": sample.oracle,
            "random": sample.random,
            "stateful": self.reference.stateful,
            "skipped": sample.skipped,
            "call_s": self.reference.call_s,
            "aliases": self.reference.aliases or bool(self.donated | sample.overwrites),
            "movable": len(sample.movable),
        }

    def publish(self, frame: Frame) -> dict[str, Any]:
        """Copy a sample's master into a runner's arena; with `perturb`, change its values first."""
        self._publish(frame.fields)
        return {}

    def _publish(self, fields: dict[str, Any]) -> None:
        if fields.get("perturb") is not None:
            self.samples[fields["sample"]].perturb(fields["perturb"])
        self._copy(fields)

    def _copy(self, fields: dict[str, Any]) -> None:
        """Write a master into its slot."""
        sample, base = self.samples[fields["sample"]], fields["base"]
        runner = self.runners[fields["runner"]]
        arena = runner.inputs
        into = elements(arena, torch.uint8, sample.size, base)
        into.copy_(elements(sample.image, torch.uint8, sample.size))
        if fields.get("late") is not None and runner.memory.writable:
            delayed_inputs.hide(sample, arena, base, fields["late"])

    def reveal(self, frame: Frame) -> dict[str, Any]:
        """Give an armed side what was hidden from it."""
        fields = frame.fields
        sample, runner = self.samples[fields["sample"]], self.runners[fields["runner"]]
        given = (sample, runner.inputs, runner.memory, fields["base"], fields["late"])
        return {"written": not runner.memory.writable or delayed_inputs.reveal(*given)}

    def check(self, frame: Frame) -> dict[str, Any]:
        """Snapshot a side's outputs, compare them, and see what the side overwrote."""
        fields = frame.fields
        sample, runner = self.samples[fields["sample"]], self.runners[fields["runner"]]
        mutated = inputs.overwritten(sample, runner.inputs, fields["base"], self.donated)
        if self.rule is not None and self.rule["name"] == "runs":
            return self._answer(RIGHT, mutated, None)
        difference, worst = self._shape_of(sample, fields["outputs"]), None
        if difference is None:
            places = [item.get("address", 0) for item in fields["outputs"]]
            outputs = self._snapshot(sample, runner, places)
            difference, worst = self._compare(sample, outputs)
            strict = self.rule is None
            if (
                difference.kind == "values"
                and strict
                and inputs.widen_tolerance(self.reference, sample)
            ):
                difference, worst = self._compare(sample, outputs)
        return self._answer(difference, mutated, worst)

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
            if difference.error_over_tolerance is not None:
                values.append(difference.error_over_tolerance)
            if difference.kind:
                break
        return difference, max(values) if values else None

    def timed(self, frame: Frame) -> dict[str, Any]:
        """Snapshot a timed call's outputs, see what was overwritten, write the next call's inputs.

        One frame does it all, since every exchange stands between two timed calls. With
        `compare`, the candidate's snapshot is held against the eager one of the same contents.
        """
        fields = frame.fields
        sample, runner = self.samples[fields["sample"]], self.runners[fields["runner"]]
        mutated = inputs.overwritten(sample, runner.inputs, fields["base"], self.donated)
        if runner.memory.differs(fields["base"], sample.image, fields["look"]):
            mutated.append("the inputs of a timed call")
        alias = any(
            runner.memory.holds(address, len(runner.inputs)) for address in fields["addresses"]
        )
        if fields["keep"]:
            self.snapshots[fields["runner"]] = self._snapshot(sample, runner, fields["addresses"])
        if fields["expect"]:
            values, _ = reference.run(
                self.reference, sample.arguments(), sample.grad_outputs(), sample.forward_seed
            )
            self.snapshots["eager"] = list(values)
        difference = self._compare_timed(sample) if fields["compare"] else None
        if fields["next"] is not None:
            self._publish(fields["next"])
        return self._answer(difference, mutated, None, alias=alias)

    def lint(self, frame: Frame) -> dict[str, Any]:
        """Find out which answers pass that do no work."""
        fields = frame.fields
        given = (fields["params"], fields["variation"], fields["rules"])
        return degenerate_answers.lint(self.reference, *given)

    def _compare_timed(self, sample: InputSample) -> Mismatch | None:
        outputs, centers = self.snapshots.pop("candidate"), self.snapshots.pop("eager")
        for item, output, center in zip(sample.expected, outputs, centers, strict=True):
            if output is None or center is None:
                difference = UNREADABLE
            elif self.rule is not None:
                difference = compare_published(center, output, self.rule)
            else:
                difference = compare(item, output, center, TIMED_SLACK)
            strict = self.rule is None and difference is not UNREADABLE
            if difference.kind == "values" and strict:
                # Hard contents: what they allow is found out only now.
                fresh = inputs.again(self.reference, sample)
                if fresh is not None and not self._compare(fresh, outputs)[0].kind:
                    return None
            if difference.kind:
                return difference
        return None

    def _shape_of(self, sample: InputSample, outputs: list[dict[str, Any]]) -> Mismatch | None:
        if len(outputs) != len(sample.expected):
            message = f"expected {len(sample.expected)} outputs, got {len(outputs)}"
            return Mismatch("count", message, None)
        said = outputs[0].get("structure", "1") if outputs else "1"
        wanted = sample.structure[:200]
        # One value may stand for a dict of one: the C ABI has no dicts.
        if said != wanted and not (said.isdigit() and "," not in wanted):
            return Mismatch("count", f"expected {_shown(wanted)}, got {_shown(said)}", None)
        for item, described in zip(sample.expected, outputs, strict=True):
            mismatch = describe_mismatch(item, described)
            if mismatch is not None:
                return mismatch
        return None

    def _snapshot(
        self, sample: InputSample, runner: RunnerState, places: list[int]
    ) -> list[torch.Tensor | None]:
        # What is read follows from what is expected; only the place is the contestant's word.
        return [
            runner.memory.read(address, item.value)
            for item, address in zip(sample.expected, places, strict=True)
        ]

    def _answer(
        self,
        difference: Mismatch | None,
        mutated: list[str],
        worst: float | None,
        *,
        alias: bool = False,
    ) -> dict[str, Any]:
        difference = difference or RIGHT
        error = difference.error_over_tolerance if difference.kind else worst
        if error is not None and not error < float("inf"):
            error = None
        return {
            "wrong": difference.kind,
            "message": difference.message,
            "error": error,
            "mutated": mutated,
            "alias": alias,
        }


def _shown(structure: str) -> str:
    return "no dict" if structure.isdigit() else f"a dict of {structure}"


def serve(channel: Channel, judge: Judge) -> None:
    """Answer frames until the supervisor is gone."""
    handlers: dict[str, Callable[[Frame], dict[str, Any]]] = {
        name: getattr(judge, name) for name in judge.HANDLERS
    }
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        try:
            channel.send("answer", handlers[frame.kind](frame))
        except ProblemFailure as error:
            channel.send("problem_failed", {"message": str(error)})
        except torch.OutOfMemoryError as error:
            message = f"{frame.kind}: it needs more memory than the device has: {str(error)[:300]}"
            channel.send("problem_failed", {"message": message})
        except FrameError as error:
            message = f"it has more tensors or values than a frame can name: {error}"
            channel.send("problem_failed", {"message": message})


def main(sock: socket.socket, applied: dict[str, str]) -> None:
    """Say that it is ready, and judge."""
    channel = Channel(sock)
    channel.send("ready", {"applied": applied})
    serve(channel, Judge(channel))
