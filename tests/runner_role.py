"""A runner in a thread, driven as the supervisor and the judge drive it."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import time
from typing import Any

import torch

from tests.process_roles import Role
from tilewright.evaluator.judge.memory_reader import read_tensor
from tilewright.evaluator.runners.sync_page import SyncPage
from tilewright.runner.main import main
from tilewright.wire import sync_page
from tilewright.wire.frames import Frame
from tilewright.wire.tensors import Layout

SMALL = 4096


class RunnerRole:
    """A runner in a thread, and the memory that the judge shares with it."""

    def __init__(self, *, mapped: bool = True) -> None:
        self.role = Role(main)
        self.inputs: Any = mmap.mmap(-1, SMALL)
        """Where the runner reads its inputs; nowhere before it has made memory for them."""
        self.page = SyncPage()
        self.sequence = 0
        self.base = 0
        """Address of its inputs."""
        self.memory = -1
        """Descriptor of the runner's memory."""
        self.maps = -1
        """Descriptor of how it is mapped."""
        self.pages = -1
        """Descriptor of its pages."""
        if mapped:
            assert self.map().kind == "mapped"

    def map(self, size: int = 1 << 20) -> Frame:
        """Have the runner make memory for inputs, and share the sync page."""
        frame = self.role.ask("map", {"inputs": size}, fds=(self.page.fd, self.page.go_on))
        if frame.fds:
            self.memory, self.maps, self.pages = frame.fds
        if frame.kind == "mapped":
            self.base = frame.fields["base"]
            self.inputs = (ctypes.c_char * size).from_address(self.base)
        return frame

    def load(
        self,
        files: dict[str, str | bytes],
        entry: str = "work",
        *,
        init: list[Any] | dict[str, Any] | None = None,
        artifacts: dict[str, str] | None = None,
        **changes: Any,
    ) -> Frame:
        """Load a candidate; return the frame after `entering`, and after `constructing`."""
        layout = Layout()
        tree = layout.describe([] if init is None else init)
        layout.write(self.inputs)
        parts = [(p, t if isinstance(t, bytes) else t.encode()) for p, t in files.items()]
        fields = {
            "loader": "python",
            "entry": entry,
            "keywords": [],
            "mode": "train",
            "init_seed": 5,
            "init": tree,
            "init_bytes": layout.size,
            "files": [{"path": path, "size": len(data)} for path, data in parts],
            "artifacts": artifacts or {},
            "suppressed": False,
            "import_paths": [],
            "threads": 1,
            "compile": None,
            **changes,
        }
        frame = self.role.ask("load", fields, b"".join(data for _, data in parts))
        while frame.kind in ("entering", "constructing"):
            frame = self.role.receive()
        return frame

    def fields(self, *args: Any, outputs: tuple[torch.Tensor, ...] = (), **changes: Any) -> Any:
        """Put arguments into the runner's memory and return the fields of a call."""
        layout = Layout()
        gradients = changes.pop("grad_outputs", [])
        fields = {
            "base": 0,
            "args": layout.describe(list(args)),
            "grads": [],
            "grad_outputs": layout.describe(list(gradients)),
            "forward_seed": 3,
            "expected": [
                {"dtype": str(v.dtype).removeprefix("torch."), "shape": list(v.shape)}
                for v in outputs
            ],
            **changes,
        }
        layout.write(self.inputs)
        return {"size": layout.size, **fields}

    def call(self, *args: Any, **changes: Any) -> Frame:
        """Make one untimed call."""
        return self.role.ask("call", self.fields(*args, **changes))

    def timed(
        self,
        *args: Any,
        wait_s: float = 10.0,
        release: bool = True,
        held: tuple[int, ...] = (),
        **changes: Any,
    ) -> Frame:
        """Make one timed call as the supervisor does."""
        self.sequence += 1
        fields = self.fields(*args, **changes)
        fields |= {"sequence": self.sequence, "wait_s": wait_s, "held": list(held)}
        self.role.channel.send("arm", fields)
        if release:
            self._until(sync_page.READY)
            self.page.flags[sync_page.GO] = self.sequence
            # The runner goes on before its outputs are read.
            assert self.page.let_go_on()
        return self.role.receive()

    def _until(self, word: int) -> None:
        limit = time.monotonic() + 10.0
        while self.page.flags[word] != self.sequence:
            # A frame before the token is an error, which the caller receives.
            if select.select([self.role.channel], [], [], 0.001)[0]:
                return
            assert time.monotonic() < limit

    def output(self, like: torch.Tensor, address: int) -> torch.Tensor | None:
        """Return what the judge would read as an output, or `None`."""
        return read_tensor(self.memory, address, like)

    def close(self) -> None:
        """End the runner."""
        self.role.close()
        # The page stays mapped: the thread that has just ended may still view it.
        self.page.flags.release()
        os.close(self.page.fd)
        os.close(self.page.go_on)
        os.close(self.page._go_on_writer)
        for fd in (self.memory, self.maps, self.pages):
            if fd >= 0:
                os.close(fd)
