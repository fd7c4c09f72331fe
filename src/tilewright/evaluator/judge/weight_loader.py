"""New weights for the reference and for the runners, so that no weight can be folded in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

import torch

from tilewright.evaluator.judge import weights
from tilewright.evaluator.judge.memory_reader import RunnerState, write_layout
from tilewright.evaluator.judge.reference import (
    ProblemFailure,
    Reference,
    problem_step,
    state_under,
)
from tilewright.evaluator.judge_client import messages
from tilewright.evaluator.judge_client.messages import Done
from tilewright.wire.tensors import DTYPES, Layout

OTHER_INIT_SEED = 0x5EED
"""An init seed that no evaluation draws on purpose; any other one would do."""


class WeightLoader:
    """The weights of a problem: of the init seed, new, and loaded. Lifetime: the problem."""

    def __init__(
        self,
        reference: Reference,
        runners: Mapping[str, RunnerState],
        buffers: Sequence[str] = (),
    ) -> None:
        self._reference = reference
        self._buffers = tuple(buffers)
        self._runners = runners
        self._fresh: dict[str, torch.Tensor] = {}
        self._applied: dict[str, torch.Tensor] = {}
        model = reference.model
        state = {} if model is None else model.state_dict()
        self._seeded = {name: value.detach().clone() for name, value in state.items()}
        self._refuse_unknown_buffers()

    def _refuse_unknown_buffers(self) -> None:
        model = self._reference.model
        with problem_step("finding BUFFERS among the reference's buffers"):
            for name in self._buffers:
                if model is None or not weights.declared_buffers(model, (name,)):
                    raise LookupError(f"no buffer of the module's state is named {name!r}")

    def reset(self, _: messages.ResetWeights) -> Done:
        if self._reference.model is not None:
            self._reference.model.load_state_dict(self._seeded)
            self._reference.precision.double = None
        self._fresh = {}
        return Done()

    def plan(self, message: messages.PlanWeights) -> messages.WeightsPlan:
        model = self._reference.model
        runner = self._runners[message.runner]
        runner.entries = json.loads(message.entries) if message.entries else []
        if model is None:
            return messages.WeightsPlan([])
        if not self._fresh:
            self._fresh = self._planned(model, message)
        runner.mapping = weights.named_alike(self._fresh, runner.entries)
        return messages.WeightsPlan(weights.unmatched(self._fresh, runner.entries))

    def _planned(
        self, model: torch.nn.Module, message: messages.PlanWeights
    ) -> dict[str, torch.Tensor]:
        """Return new weights, or the declared buffers of the init seed."""
        if not message.initial:
            return weights.resample(model, message.seed, self._buffers)
        found = weights.declared_buffers(model, self._buffers)
        # Nothing of the reference changes, so these need not be applied first.
        self._applied = {name: self._seeded[name] for name, _ in found}
        return dict(self._applied)

    def match(self, message: messages.MatchWeights) -> Done:
        runner = self._runners[message.runner]
        described = {name: (shape, kind) for name, shape, kind in runner.entries}
        known = set(runner.mapping.values())
        left = {name: self._seeded[name] for name in self._fresh if name not in known}
        for name, address in zip(message.names, message.addresses, strict=False):
            shape, kind = described[name]
            like = torch.empty(shape, dtype=DTYPES[kind], device=self._reference.device)
            # One after the other: thousands of weights that share memory would each be a copy.
            value = runner.memory.read(address, like)
            ours = None if value is None else weights.valued_alike(value, left)
            if ours is not None:
                runner.mapping[name] = ours
                del left[ours]
        return Done()

    def apply(self, message: messages.ApplyWeights) -> messages.WeightsApplied:
        model = self._reference.model
        if model is None:
            return messages.WeightsApplied([], 0)
        held = [set(self._runners[name].mapping.values()) for name in message.runners]
        common = set(self._fresh).intersection(*held)
        lacking = sorted(set(self._fresh) - common)
        # The judge also changes weights whose values an author knows before the module is built.
        # Otherwise a candidate could skip the zeros of a sparse weight, or a bias of zeros.
        known = self._known_before(lacking)
        self._applied = {
            name: value for name, value in self._fresh.items() if name in common or name in known
        }
        model.load_state_dict(self._seeded)
        # Not strict: of two names of one tied weight only the first has new values.
        model.load_state_dict(self._applied, strict=False)
        self._reference.precision.double = None
        layout = Layout()
        layout.describe(self._applied)
        return messages.WeightsApplied(lacking, layout.size)

    def _known_before(self, names: Sequence[str]) -> set[str]:
        """Return those of these weights that depend little on the init seed."""
        known = {name for name in names if weights.is_constant(self._seeded[name])}
        others = [name for name in names if name not in known]
        if others:
            again: dict[str, torch.Tensor] = {}
            # A module that can be built once alone fails no candidate that holds its weights.
            with suppress(ProblemFailure):
                again = state_under(self._reference, OTHER_INIT_SEED)
            known |= {
                name
                for name in others
                if weights.is_known_before(self._seeded[name], again.get(name))
            }
        return known

    def publish(self, message: messages.PublishWeights) -> messages.WeightsPublished:
        runner = self._runners[message.runner]
        layout = Layout()
        tree = layout.describe(
            {
                theirs: self._applied[ours]
                for theirs, ours in runner.mapping.items()
                if ours in self._applied
            }
        )
        write_layout(runner, layout, self._reference.device)
        return messages.WeightsPublished(tree)
