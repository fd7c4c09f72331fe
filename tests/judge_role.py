"""A judge in a thread, driven as the supervisor and one runner drive it."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

import torch

from tests.process_roles import InputArea, Role
from tilewright.evaluator.judge.process import main
from tilewright.runner import calls
from tilewright.wire.frames import ChannelClosed, Frame
from tilewright.wire.tensors import build

PLAIN = {
    "writable_inputs": [],
    "grads": [],
    "keywords": [],
    "mode": "train",
    "init_seed": 5,
    "compares_overwritten": False,
    "threads": 1,
    "tf32": True,
}


class JudgeRole:
    """A judge in a thread, and a runner whose memory the test reads and writes."""

    def __init__(self) -> None:
        self.role = Role(main)
        self.area = InputArea()
        self.kept: list[torch.Tensor] = []
        self.calls = 0
        self.held: list[Any] = []
        """Outputs of timed calls, which their callers hold."""
        """Number of the last call."""

    def ask(self, kind: str, body: bytes = b"", **fields: Any) -> dict[str, Any]:
        """Ask the judge; its answer must not be a failure."""
        frame = self.role.ask(kind, fields, body)
        assert frame.kind == "answer", frame
        return frame.fields

    def load(self, source: str, kind: str = "function", **changes: Any) -> Frame:
        """Send a problem and return the whole answer."""
        fields = {**PLAIN, "problem_kind": kind, "rule": None, **changes}
        return self.role.ask("problem", fields, source.encode())

    def map(self, runner: str = "candidate", address: int | None = None) -> None:
        """Make a runner known by its memory; its inputs may lie elsewhere."""
        fields = {"runner": runner, "address": address or self.area.address}
        own = [os.open("/proc/self/mem", os.O_RDWR)]
        own += [os.open(f"/proc/self/{name}", os.O_RDONLY) for name in ("maps", "pagemap")]
        assert self.role.ask("map", fields, fds=tuple(own)).fields == {}
        for fd in own:
            os.close(fd)

    def sample(
        self, variation: str = "nominal", seed: int = 3, *, timed: bool = False
    ) -> dict[str, Any]:
        """Have inputs sampled as `d`."""
        fields = {"params": {"n": 4}, "variation": variation, "seed": seed, "forward_seed": 1}
        return self.ask("sample", sample="d", timed=timed, **fields)

    def inputs(self, sample: dict[str, Any], base: int = 0) -> list[torch.Tensor]:
        """Have the sample written into the runner's memory; return views of its tensors."""
        asked = {"sample": "d", "runner": "candidate", "base": base}
        assert self.ask("publish", **asked) == {"written": True}
        return list(build(sample["tree"], self.area.inputs, base))

    def renew(self, seed: int, variation: str = "nominal", **changes: Any) -> dict[str, Any]:
        """Have the sample get new values."""
        fields = {"sample": "d", "seed": seed, "forward_seed": seed, "variation": variation}
        return self.ask("renew", **{**fields, "varied": variation != "nominal", **changes})

    def put(self, *outputs: torch.Tensor) -> list[dict[str, Any]]:
        """Deliver outputs as a runner does; return its description of them."""
        call = calls.PreparedCall(
            args=(),
            grads=(),
            grad_outputs=(),
            first_byte=0,
            input_bytes=0,
        )
        self.kept, structure = calls.deliver(outputs)
        described = calls.describe(self.kept, structure, call, set())
        return [{key: value for key, value in item.items() if key != "alias"} for item in described]

    def check(self, *outputs: torch.Tensor, base: int = 0) -> dict[str, Any]:
        """Deliver outputs and have them judged."""
        seen = self.timed("candidate", *outputs, base=base, look=None)
        described = self.put(*outputs)
        answer = self.ask("check", sample="d", runner="candidate", outputs=described)
        return {**answer, "mutated": seen["mutated"], "misplaced": seen["misplaced"]}

    def timed(self, runner: str, *outputs: torch.Tensor, **changes: Any) -> dict[str, Any]:
        """Deliver the outputs of a runner's call; have a snapshot of the candidate's taken."""
        self.put(*outputs)
        self.held.append(self.kept)
        self.calls += 1
        keep = runner == "candidate"
        plain = {"sample": "d", "base": 0, "keep": keep, "expect": False, "compare": False}
        plain |= {"addresses": calls.addresses(self.kept), "look": [], "call": self.calls}
        return self.ask("finish_timed", runner=runner, **{**plain, **changes})

    def plan(self, weights: dict[str, torch.Tensor], seed: int = 1) -> dict[str, Any]:
        """Report which weights the runner holds."""
        said = [[name, list(value.shape), "float32"] for name, value in weights.items()]
        return self.ask("plan_weights", json.dumps(said).encode(), runner="candidate", seed=seed)

    def published(self) -> dict[str, torch.Tensor]:
        """Return copies of the weights that the judge publishes to the runner."""
        tree = self.ask("publish_weights", runner="candidate")["tree"]
        values = build(tree, self.area.inputs, 0)
        return {name: value.clone() for name, value in values.items()}

    def close(self) -> None:
        """End the judge, which the descriptors of its runners do not outlive."""
        with contextlib.suppress(ChannelClosed, OSError):
            self.ask("forget", runners=["candidate", "eager", "compiled"], samples=[])
        self.role.close()
