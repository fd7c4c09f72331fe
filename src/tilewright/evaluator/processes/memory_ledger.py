"""Device memory that supervisors keep between their evaluations, and how one asks for it back.

Each supervisor of this user has an entry for each of its devices: a file that it keeps locked. The
kernel releases the lock when the process ends, so no entry counts longer than its process lives.
The holder of the device's lease asks the others to release what they keep. They answer while they
are idle, build or wait for the lease, so none of them waits for the one that asks.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tilewright.errors import InfrastructureError
from tilewright.evaluator.processes.prefork import lease_folder
from tilewright.records.file_lock import try_lock

ASKED = ".asked"
"""End of the name of a file that asks the owner of an entry to release."""
NUMBER_BYTES = 20
"""Digits of an entry: one number of fixed length, so that each write replaces the last one."""
POLL_S = 0.01
"""Seconds between two looks at the entries that were asked."""


class DeviceCrowded(InfrastructureError):
    """Device memory ran out while idle processes held some; the evaluation is repeated alone."""


class MemoryLedger:
    """The entry of one supervisor, and its view of the others. Lifetime: a host of one device."""

    def __init__(self, lease: str) -> None:
        self._folder = lease_folder() / f"{lease}.memory"
        # The name never comes again, also if the number of the process does.
        self.name = f"{os.getpid()}-{secrets.token_hex(4)}"
        made = self._folder / f".{self.name}"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._file = made.open("w+b")
            try_lock(self._file)
            self.publish(0)
            # Only a locked entry becomes visible: an unlocked one belongs to a process that ended.
            made.rename(self._folder / self.name)
        except OSError as error:
            text = f"cannot make the device lease in {self._folder}: {error}"
            raise InfrastructureError(text) from error

    def publish(self, held_bytes: int) -> None:
        """Tell the others how many bytes of the device our idle processes hold."""
        os.pwrite(self._file.fileno(), f"{held_bytes:0{NUMBER_BYTES}d}".encode(), 0)

    def others(self) -> dict[str, int]:
        """Return the bytes that each other living supervisor holds; remove entries of dead ones."""
        found = dict[str, int]()
        for path in sorted(self._folder.iterdir()):
            if path.name == self.name or path.name.startswith(".") or path.suffix == ASKED:
                continue
            # One that closes meanwhile has no entry any more.
            with suppress(FileNotFoundError), path.open("rb") as file:
                if try_lock(file):
                    self._remove(path.name)
                else:
                    found[path.name] = int(file.read(NUMBER_BYTES) or b"0")
        return found

    def supervisors(self) -> set[int]:
        """Return the numbers of the processes of all living supervisors, this one's too."""
        return {int(name.partition("-")[0]) for name in (self.name, *self.others())}

    def _remove(self, name: str) -> None:
        for path in (self._folder / name, self._request(name)):
            path.unlink(missing_ok=True)

    def _request(self, name: str) -> Path:
        return self._folder / (name + ASKED)

    @property
    def release_requested(self) -> bool:
        """Whether another supervisor waits for our answer."""
        return self._request(self.name).exists()

    def answer(self) -> None:
        """Tell who asked that our idle processes hold nothing any more."""
        self.publish(0)
        self._request(self.name).unlink(missing_ok=True)

    def request_release(
        self, names: Iterable[str], timeout_s: float, watch: Callable[[], None]
    ) -> list[str]:
        """Ask supervisors to release what they keep; return those that live and did not answer."""
        waiting, limit = list(names), time.monotonic() + timeout_s
        try:
            for name in waiting:
                self._request(name).touch()
            while waiting := self._unanswered(waiting):
                if time.monotonic() > limit:
                    break
                watch()
                time.sleep(POLL_S)
            return waiting
        finally:
            # A late answer would release what nobody waits for.
            for name in waiting:
                self._request(name).unlink(missing_ok=True)

    def _unanswered(self, names: list[str]) -> list[str]:
        living = self.others()
        return [name for name in names if name in living and self._request(name).exists()]

    def close(self) -> None:
        """Remove the entry."""
        self._remove(self.name)
        self._file.close()
