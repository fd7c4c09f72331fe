"""What a sandboxed process may have, and the layers that see to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.wire.names import ISOLATION_LAYERS

Main = Callable[[dict[str, str]], int]


@dataclass(frozen=True)
class Confinement:
    """What the payload may have."""

    read_only: tuple[str, ...]
    """Host paths that it sees at the same place, read-only; the rest of the host it does not.
    A symbolic link is shown as one, so what it leads to must be listed too."""
    writable_tmp_bytes: int
    """Size of its private /tmp, and again of its private /dev/shm."""
    uid: int
    """What root becomes, user and group alike. Give each sandbox of a host its own."""
    memory_bytes: int
    """RLIMIT_DATA of each process: heap and private mappings, those of the forkserver included."""
    file_bytes: int
    processes: int
    """Processes and threads of the sandbox."""
    descriptors: int
    core: tuple[int, ...] | None
    """The CPU cores to run on."""
    environment: dict[str, str]
    """The whole environment."""
    keep_fds: tuple[int, ...]
    """Descriptors that stay open. Of 0, 1 and 2, those not named lead to /dev/null."""
    layers: frozenset[str] = field(default=frozenset(ISOLATION_LAYERS))
    """The layers that are wanted."""
    devices: tuple[str, ...] = ()
    """Device files (or folders of them) under /dev that it may use, beyond null, zero and so on."""
    skipped_pids: int = 0
    """Process ids that are used up first: CUDA opens no memory of a process that has its own id,
    as judge and contestant would, each the first in a namespace."""

    def __post_init__(self) -> None:
        """Refuse names that are no layer, which would be off without a word.

        Raises:
            ValueError: there is one.
        """
        unknown = {*self.layers} - {*ISOLATION_LAYERS}
        if unknown:
            raise ValueError(f"no layers of this name: {sorted(unknown)}")
