"""The forkserver: torch and triton imported once; forks judges, contestants and builders.

It runs no foreign code, no torch operation (a matmul here would hang every forked child), and has
a single thread. One frame in, one fork out. It dies with its supervisor.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import io
import os
import signal
import socket
import sys
import weakref
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from typing import Any

from tilewright.runner.sandbox.isolation import Confinement, fork_confined
from tilewright.wire.frames import Channel, ChannelClosed, Frame
from tilewright.wire.names import ISOLATION_LAYERS

PR_SET_PDEATHSIG = 1
PR_SET_THP_DISABLE = 41
Role = Callable[[socket.socket, dict[str, str]], None]


def main(argv: list[str] | None = None) -> None:
    """Import what the roles need, then fork on request until the supervisor is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--role", action="append", default=[], metavar="NAME=MODULE")
    options = parser.parse_args(argv)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Small pages here, huge ones in the children: a child copies what it writes to, page by page.
    _prctl(PR_SET_THP_DISABLE, 1)
    if os.getppid() != options.parent:
        sys.exit("forkserver: the supervisor is gone already")
    channel = Channel(socket.socket(fileno=options.channel))
    roles = _load_roles(options.role)
    _import_triton()
    _let_libraries_be()
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
        _reap()
        channel.send("forked", {"pid": pid})


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _load_roles(entries: list[str]) -> dict[str, Role]:
    """Import `NAME=MODULE` pairs; the module's `main` plays the role."""
    roles: dict[str, Role] = {}
    for entry in entries:
        name, _, module = entry.partition("=")
        roles[name] = importlib.import_module(module).main
    return roles


def _let_libraries_be() -> None:
    """Finalise nothing of what is imported here when a child ends: it shows nothing of it.

    torch would unregister each of its operators, which takes longer than many an evaluation.
    """
    # There is no public list of them. Without this one children end as right, and later.
    for finalizer in list(getattr(weakref.finalize, "_registry", ())):
        finalizer.atexit = False


def _import_triton() -> None:
    try:
        importlib.import_module("triton.language")
        if os.environ.get("TRITON_INTERPRET") == "1":
            importlib.import_module("triton.runtime.interpreter")
        else:
            with contextlib.suppress(Exception):
                # Only sooner: a child does what is missing for itself.
                _prepare_triton()
    except ImportError:
        return


def _prepare_triton() -> None:
    """Do once what every child would do at its first launch: hash the installation, look around."""
    importlib.import_module("triton.runtime.cache").triton_key()
    for name in ("triton.backends.nvidia.driver", "triton.experimental.gluon.nvidia.hopper"):
        importlib.import_module(name)
    importlib.import_module("triton.runtime.build").platform_key()
    importlib.import_module("triton.backends.nvidia.driver").library_dirs()


def _fork(frame: Frame, roles: dict[str, Role]) -> int:
    """Fork a confined child that plays `role` on the first descriptor of the frame.

    Descriptors: channel, status pipe, output pipe.
    """
    channel_fd, status_fd, output_fd = frame.fds
    play = roles[frame.fields["role"]]

    def payload(applied: dict[str, str]) -> int:
        _prctl(PR_SET_THP_DISABLE, 0)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        os.close(output_fd)
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Most children are killed; what they printed before is kept line by line.
            sys.stdout.reconfigure(line_buffering=True)
        play(socket.socket(fileno=channel_fd), applied)
        return 0

    return fork_confined(
        _confinement(frame.fields["confinement"], (channel_fd, output_fd)),
        payload,
        status_fd=status_fd,
    )


def _confinement(values: dict[str, Any], keep_fds: tuple[int, ...]) -> Confinement:
    known = {item.name for item in dataclass_fields(Confinement)}
    converted: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in known
    }
    wanted = values["layers"]
    converted["layers"] = frozenset(ISOLATION_LAYERS if "all" in wanted else wanted)
    return Confinement(**{**converted, "keep_fds": keep_fds})


def _reap() -> None:
    """Collect inits that have ended, so that none stays a zombie."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return


if __name__ == "__main__":
    main()
