"""A judge in a thread, driven as the supervisor and one runner drive it."""

from __future__ import annotations

import json
import os
from typing import Any

import torch

from tests.process_roles import Arenas, Role
from tilewright.evaluator.judge.process import main
from tilewright.runner import calls
from tilewright.wire.frames import Frame
from tilewright.wire.tensors import build

PLAIN = {
    "writable_inputs": [],
    "grads": [],
    "keywords": [],
    "mode": "train",
    "init_seed": 5,
    "threads": 1,
    "tf32": True,
}


class JudgeRole:
    """A judge in a thread, and a runner whose memory the test reads and writes."""

    def __init__(self) -> None:
        self.role = Role(main)
        self.arenas = Arenas()
        self.kept: list[torch.Tensor] = []

    def ask(self, kind: str, body: bytes = b"", **fields: Any) -> dict[str, Any]:
        """Ask the judge; its answer must not be a failure."""
        frame = self.role.ask(kind, fields, body)
        assert frame.kind == "answer", frame
        return frame.fields

    def load(self, source: str, kind: str = "function", **changes: Any) -> Frame:
        """Send a problem and return the whole answer."""
        fields = {**PLAIN, "problem_kind": kind, "rule": None, **changes}
        return self.role.ask("problem", fields, source.encode())

    def map(
        self, runner: str = "candidate", input_copy: int | None = None, memory: int = os.O_RDWR
    ) -> None:
        """Share the arenas under a runner's name; the input copy may be elsewhere."""
        fields = {
            "runner": runner,
            "input_copy": input_copy or self.arenas.address,
            **self.arenas.fields,
        }
        own = [os.open("/proc/self/mem", memory), os.open("/proc/self/maps", os.O_RDONLY)]
        assert self.role.ask("map", fields, fds=(*self.arenas.fds, *own)).fields == {}
        for fd in own:
            os.close(fd)

    def sample(
        self, variation: str = "nominal", seed: int = 3, *, timed: bool = False
    ) -> dict[str, Any]:
        """Have inputs drawn as `d`."""
        fields = {"params": {"n": 4}, "variation": variation, "seed": seed, "forward_seed": 1}
        return self.ask("sample", sample="d", timed=timed, **fields)

    def inputs(self, sample: dict[str, Any], base: int = 0) -> list[torch.Tensor]:
        """Publish the draw and return views of its tensors in the arena."""
        self.ask("publish", sample="d", runner="candidate", base=base)
        return list(build(sample["tree"], self.arenas.inputs, base))

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
        described = calls.describe(self.kept, structure, call)
        return [{key: value for key, value in item.items() if key != "alias"} for item in described]

    def check(self, *outputs: torch.Tensor, base: int = 0) -> dict[str, Any]:
        """Deliver outputs and have them judged."""
        return self.ask(
            "check", sample="d", runner="candidate", base=base, outputs=self.put(*outputs)
        )

    def timed(self, runner: str, *outputs: torch.Tensor, **changes: Any) -> dict[str, Any]:
        """Deliver the outputs of a runner's timed call and have a snapshot taken."""
        self.put(*outputs)
        places = calls.addresses(self.kept)
        plain = {"sample": "d", "base": 0, "keep": True, "expect": False, "compare": False}
        plain |= {"addresses": places, "look": []}
        return self.ask("finish_timed", runner=runner, **{**plain, "next": None, **changes})

    def plan(self, weights: dict[str, torch.Tensor], seed: int = 1) -> dict[str, Any]:
        """Report which weights the runner holds."""
        said = [[name, list(value.shape), "float32"] for name, value in weights.items()]
        return self.ask("plan_weights", json.dumps(said).encode(), runner="candidate", seed=seed)

    def published(self) -> dict[str, torch.Tensor]:
        """Return copies of the weights that the judge publishes to the runner."""
        tree = self.ask("publish_weights", runner="candidate")["tree"]
        values = build(tree, self.arenas.inputs, 0)
        return {name: value.clone() for name, value in values.items()}

    def close(self) -> None:
        """End the judge and release the arenas."""
        self.role.close()
        self.arenas.close()
