"""Preforked children, confined and waiting; on a GPU with their contexts made.

Making a context slows a call that is timed on the device meanwhile, and may last until the next.
So no supervisor makes a context on a device while another evaluates there.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tilewright.errors import InfrastructureError
from tilewright.evaluator.processes.forkserver_client import Child
from tilewright.records import Limits
from tilewright.records.file_lock import lock_when_free

TURN_POLL_S = 0.005
"""Seconds from one attempt to take a lease to the next."""
LEASES = Path("/tmp")
"""Where the folders of leases lie: the same place for all commands, whatever TMPDIR says."""
Fork = Callable[[str, Limits], Child]


def lease_folder() -> Path:
    """Return the folder that all commands of this user share; raise `InfrastructureError`."""
    folder = LEASES / f"tilewright-leases-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise InfrastructureError(f"cannot make the device lease in {folder}: {error}") from error
    # Everyone may write into the folder above, and a link there could name any file of this user.
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise InfrastructureError(
            f"{folder} is no folder that this user alone can write into: somebody else made it. "
            "Remove it"
        )
    return folder


def open_lock(name: str) -> IO[str]:
    """Open a lock file that all commands of this user share; raise `InfrastructureError`."""
    folder = lease_folder()
    try:
        return open(folder / f"{name}.lock", "a", encoding="ascii", opener=_open_no_link)
    except OSError as error:
        raise InfrastructureError(f"cannot make the device lease in {folder}: {error}") from error


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


@contextmanager
def turn(lease: str, give_up: threading.Event) -> Iterator[bool]:
    """Take a lease in a moment in which nobody has it; `False` when told to give up."""
    with open_lock(lease) as file:
        yield lock_when_free(file, give_up, TURN_POLL_S)


class PreforkPool:
    """Forks children early, and where a lease is named opens its device in one after the other.

    They hold no candidate and no descriptor but their own; each is used once. Lifetime: its host.
    """

    def __init__(self, fork: Fork, lease: str | None) -> None:
        self._fork = fork
        self._lease = lease
        self._preforked: dict[str, list[Child]] = {}
        self._limits: Limits | None = None
        self._opening: threading.Thread | None = None
        self._enough = threading.Event()

    def fill(self, limits: Limits, counts: dict[str, int], *, opened: bool = True) -> None:
        """Fork what is missing of `counts`, by role; begin to open the device in runners."""
        self.wait_opening()
        if limits != self._limits:
            self.clear()
        self._limits = limits
        for role, count in counts.items():
            living = [child for child in self._preforked.get(role, []) if _is_usable(child)]
            missing = range(count - len(living))
            self._preforked[role] = living + [self._fork(role, limits) for _ in missing]
        if self._lease is not None and opened:
            self._enough.clear()
            self._opening = threading.Thread(target=self._open, args=(self._lease,), daemon=True)
            self._opening.start()

    def _open(self, lease: str) -> None:
        for child in self._unopened():
            # If it is gone, or cannot be opened now, the evaluation that needs it finds that out.
            with suppress(InfrastructureError):
                child.wait_ready()
                with turn(lease, self._enough) as mine:
                    if not mine:
                        return
                    child.begin()

    def _unopened(self) -> list[Child]:
        return [child for child in self._preforked.get("runner", []) if not child.begun]

    def open_now(self) -> None:
        """Open the device in all waiting runners at once, or raise; the caller holds the lease."""
        self.wait_opening()
        waiting = self._unopened()
        for child in waiting:
            child.wait_ready()
            child.ask_to_begin()
        for child in waiting:
            child.begin()

    def stop(self) -> None:
        """Open the device in no further child; what is not opened yet opens it when it is used."""
        self._enough.set()

    def wait_opening(self) -> None:
        """Stop, and wait for the child that is just being opened."""
        self.stop()
        if self._opening is not None:
            self._opening.join()
            self._opening = None

    def take(self, role: str, limits: Limits) -> Child | None:
        """Return a living child, if there is one that was forked for these limits."""
        if role not in self._preforked:
            return None
        self.wait_opening()
        if limits != self._limits:
            self.clear()
        waiting = self._preforked[role]
        while waiting:
            child = waiting.pop(0)
            if _is_usable(child):
                return child
        return None

    def clear(self) -> None:
        """End all of them."""
        self.wait_opening()
        for waiting in self._preforked.values():
            for child in waiting:
                child.kill()
            waiting.clear()

    def __len__(self) -> int:
        """Return how many children wait."""
        return sum(map(len, self._preforked.values()))

    @property
    def opened(self) -> int:
        """How many of them have opened the device; a judge does so when it is forked."""
        return len(self) - len(self._unopened())


def _is_usable(child: Child) -> bool:
    if not child.alive():
        child.kill()
    return not child.closed
