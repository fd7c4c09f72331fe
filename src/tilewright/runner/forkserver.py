"""The forkserver process: it imports torch and triton once, and forks every other process.

It runs no foreign code, so a fork starts from a trusted state. It dies with its supervisor. It
has a single thread and runs no torch operation: a matmul here would hang every forked child.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import io
import os
import signal
import socket
import sys
import weakref
from collections.abc import Callable
from typing import Any

from tilewright.runner.sandbox import syscalls
from tilewright.runner.sandbox.isolation import fork_confined
from tilewright.runner.sandbox.policy import Confinement
from tilewright.wire.frames import Channel, ChannelClosed, Frame
from tilewright.wire.names import ISOLATION_LAYERS, PRELOAD

PR_SET_THP_DISABLE = 41
Role = Callable[[socket.socket, dict[str, str]], None]


def main(argv: list[str] | None = None) -> None:
    """Import `MODULE` of each `NAME=MODULE`, then fork on request until the supervisor is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--role", action="append", default=[], metavar="NAME=MODULE")
    options = parser.parse_args(argv)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    # Small pages here, huge pages in the children: a child copies each page that it writes to.
    _allow_huge_pages(False)
    if os.getppid() != options.parent:
        sys.exit("forkserver: the supervisor is gone already")
    channel = Channel(socket.socket(fileno=options.channel))
    pairs = (entry.split("=", 1) for entry in options.role)
    roles = {name: importlib.import_module(module).main for name, module in pairs}
    _import_triton()
    _import_preloaded(os.environ.get(PRELOAD, ""))
    # torch would unregister each of its operators when a child ends, which takes longer than many
    # an evaluation. The list is not public; where it is missing, children end as well, but later.
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        finalizer.atexit = False
    gc.collect()
    gc.freeze()
    channel.send("up", {"threads": len(os.listdir("/proc/self/task"))})
    while True:
        try:
            frame = channel.receive()
        except ChannelClosed:
            return
        pid = _fork(frame, roles)
        for fd in frame.fds:
            os.close(fd)
        # Inits that have ended stay no zombies.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        channel.send("forked", {"pid": pid})


def _allow_huge_pages(allowed: bool) -> None:
    with contextlib.suppress(OSError):
        syscalls.prctl(PR_SET_THP_DISABLE, 0 if allowed else 1)


def _import_triton() -> None:
    """Import triton; hash its installation and find its libraries, as a first launch would do."""
    load = importlib.import_module
    with contextlib.suppress(ImportError):
        load("triton.language")
        if os.environ.get("TRITON_INTERPRET") == "1":
            load("triton.runtime.interpreter")
            return
        # The rest saves time alone: a child prepares for itself what is missing.
        with contextlib.suppress(Exception):
            load("triton.runtime.cache").triton_key()
            driver = load("triton.backends.nvidia.driver")
            load("triton.experimental.gluon.nvidia.hopper")
            load("triton.runtime.build").platform_key()
            driver.library_dirs()


def _import_preloaded(names: str) -> None:
    """Import modules that the user names, joined by commas; a child imports what is missing."""
    for name in filter(None, names.split(",")):
        # A module of another package may raise anything. A child that needs it gets the error then.
        with contextlib.suppress(Exception):
            importlib.import_module(name)


def _fork(frame: Frame, roles: dict[str, Role]) -> int:
    """Fork a sandboxed child that runs the frame's role on the first of its descriptors."""
    channel_fd, status_fd, output_fd = frame.fds
    run_role = roles[frame.fields["role"]]

    def payload(applied: dict[str, str]) -> int:
        _allow_huge_pages(True)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        os.close(output_fd)
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Most children are killed; line buffering keeps the lines that they printed before.
            sys.stdout.reconfigure(line_buffering=True)
        run_role(socket.socket(fileno=channel_fd), applied)
        return 0

    policy = _confinement(frame.fields["confinement"], (channel_fd, output_fd))
    return fork_confined(policy, payload, status_fd=status_fd)


def _confinement(values: dict[str, Any], keep_fds: tuple[int, ...]) -> Confinement:
    known: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in Confinement.__dataclass_fields__
    }
    layers = ISOLATION_LAYERS if "all" in known["layers"] else known["layers"]
    return Confinement(**{**known, "layers": frozenset(layers), "keep_fds": keep_fds})


if __name__ == "__main__":
    main()
