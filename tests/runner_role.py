"""A runner in a thread, driven as the supervisor and the judge drive it."""

from __future__ import annotations

import os
import select
import time
from typing import Any

import torch

from tests.process_roles import Arenas, Role
from tilewright.evaluator.judge.memory_reader import read_tensor
from tilewright.evaluator.runners.cpu_runner import SyncPage
from tilewright.runner.main import main
from tilewright.wire import sync_page
from tilewright.wire.frames import Frame
from tilewright.wire.tensors import Layout

SMALL = 4096


class RunnerRole:
    """A runner in a thread, and the memory that the judge shares with it."""

    def __init__(self, *, mapped: bool = True) -> None:
        self.role = Role(main)
        self.arenas = Arenas()
        self.page = SyncPage()
        self.sequence = 0
        self.memory = -1
        """Descriptor of the runner's memory."""
        self.maps = -1
        """Descriptor of how it is mapped."""
        if mapped:
            assert self.map().kind == "mapped"

    def map(self) -> Frame:
        """Share arenas and the sync page."""
        fds = (*self.arenas.fds, self.page.fd)
        frame = self.role.ask("map", self.arenas.fields, fds=fds)
        if frame.fds:
            self.memory, self.maps = frame.fds
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
        """Load a candidate; return the frame after `entering`."""
        layout = Layout()
        tree = layout.describe([] if init is None else init)
        layout.write(self.arenas.inputs)
        parts = [(p, t if isinstance(t, bytes) else t.encode()) for p, t in files.items()]
        fields = {
            "loader": "python",
            "entry": entry,
            "other_entries": [],
            "keywords": [],
            "mode": "train",
            "init_seed": 5,
            "init": tree,
            "files": [{"path": path, "size": len(data)} for path, data in parts],
            "artifacts": artifacts or {},
            "suppressed": False,
            "import_paths": [],
            "threads": 1,
            "compile": None,
            **changes,
        }
        frame = self.role.ask("load", fields, b"".join(data for _, data in parts))
        return self.role.receive() if frame.kind == "entering" else frame

    def fields(self, *args: Any, outputs: tuple[torch.Tensor, ...] = (), **changes: Any) -> Any:
        """Put arguments into the input arena and return the fields of a call."""
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
        layout.write(self.arenas.inputs)
        return {"size": layout.size, **fields}

    def call(self, *args: Any, **changes: Any) -> Frame:
        """Make one untimed call."""
        return self.role.ask("call", self.fields(*args, **changes))

    def timed(
        self, *args: Any, wait_s: float = 10.0, release: bool = True, **changes: Any
    ) -> Frame:
        """Make one timed call as the supervisor does."""
        self.sequence += 1
        fields = self.fields(*args, **changes)
        self.role.channel.send("arm", {**fields, "sequence": self.sequence, "wait_s": wait_s})
        if release:
            self._until(sync_page.READY)
            self.page.flags[sync_page.GO] = self.sequence
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
        """End the runner and release the memory."""
        self.role.close()
        self.arenas.close()
        # The page stays mapped: the thread that has just ended may still view it.
        self.page.flags.release()
        os.close(self.page.fd)
        for fd in (self.memory, self.maps):
            if fd >= 0:
                os.close(fd)
