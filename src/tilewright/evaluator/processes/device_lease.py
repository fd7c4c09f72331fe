"""The lease of a device: held by one evaluation that times, or shared by several that do not.

A stream of shared leases could keep one that wants the device for itself waiting for ever. So after
`PATIENCE_S` a waiter takes the second lock of the device, and no lease begins before its own.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tilewright.evaluator.processes.prefork import open_lock
from tilewright.records.file_lock import try_lock, try_share, unlock

PATIENCE_S = 5.0
"""Seconds after which a lease that waits to be alone blocks new ones: as long as a timing takes."""


class DeviceLease:
    """An attempt to lease a device. Lifetime: its `with` block, the lease included."""

    def __init__(self, name: str, *, shared: bool) -> None:
        self._name, self._shared = name, shared
        self._files = ExitStack()
        self._device: IO[str]
        self._queue: IO[str]
        self._blocks_new_leases = False
        """Whether no lease may begin before this one."""
        self._held_alone = False
        self._patient_until = time.monotonic() + PATIENCE_S

    def try_take(self) -> bool:
        """Take the lease if that is possible now."""
        if (
            not self._blocks_new_leases
            and not self._shared
            and time.monotonic() > self._patient_until
        ):
            self._blocks_new_leases = try_lock(self._queue)
        if not self._blocks_new_leases and not try_share(self._queue):
            return False
        taken = (try_share if self._shared else try_lock)(self._device)
        if taken or not self._blocks_new_leases:
            unlock(self._queue)
        if taken and not self._shared:
            self._held_alone = True
            self._write_holder(str(os.getpid()))
        return taken

    def holder(self) -> int | None:
        """Return the process that holds the device alone; `None`: several do, or it is unknown."""
        with suppress(OSError, ValueError):
            pid = int(Path(self._device.name).read_text(encoding="ascii"))
            # A process that was killed leaves its number behind.
            return pid if os.path.exists(f"/proc/{pid}") else None
        return None

    def _write_holder(self, text: str) -> None:
        """Tell who holds the device. A full disk costs only this note."""
        # Without a buffer, which would be written once more when the file is closed.
        with suppress(OSError):
            self._device.truncate(0)
            os.pwrite(self._device.fileno(), text.encode("ascii"), 0)

    def __enter__(self) -> Self:
        self._device = self._files.enter_context(open_lock(self._name))
        self._queue = self._files.enter_context(open_lock(f"{self._name}.queue"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the lease back, if it was taken."""
        if self._held_alone:
            self._write_holder("")
        self._files.close()
