"""The policy of a sandboxed process: the resources that it may have, and its isolation layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilewright.wire.names import ISOLATION_LAYERS

Main = Callable[[dict[str, str]], int]
"""The payload's function: from the state of each layer to an exit code."""


@dataclass(frozen=True)
class Confinement:
    """The resources of a payload."""

    read_only: tuple[str, ...]
    """Host paths that it sees at the same place, read-only. It sees no other path of the host. A
    symbolic link stays a link, so its target must be listed too."""
    writable_tmp_bytes: int
    """Size of its private /tmp, and again of its private /dev/shm."""
    uid: int
    """User and group id that replaces root. Each sandbox of a host needs its own."""
    memory_bytes: int
    """RLIMIT_DATA of each process: heap and private mappings, with those of the forkserver."""
    file_bytes: int
    """Size of the largest file that it may write."""
    processes: int
    """Processes and threads of the sandbox."""
    descriptors: int
    """Open descriptors of each process."""
    core: tuple[int, ...] | None
    """The CPU cores to run on."""
    environment: dict[str, str]
    """The whole environment."""
    keep_fds: tuple[int, ...]
    """Descriptors that stay open. Descriptors 0 to 2 lead to /dev/null if they are not named."""
    layers: frozenset[str] = field(default=frozenset(ISOLATION_LAYERS))
    """The isolation layers that the sandbox tries to activate."""
    devices: tuple[str, ...] = ()
    """Device files (or folders of them) under /dev that it may use, beyond null, zero and so on."""
    skipped_pids: int = 0
    """Process ids that the init uses up first. CUDA opens no memory of a process that has the same
    id. Judge and runner would, each being the first in its namespace."""

    def __post_init__(self) -> None:
        """Refuse unknown layers, which would be off silently."""
        unknown = {*self.layers} - {*ISOLATION_LAYERS}
        if unknown:
            raise ValueError(f"no layers of this name: {sorted(unknown)}")
