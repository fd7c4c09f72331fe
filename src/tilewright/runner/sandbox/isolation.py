"""The sandbox around a judge, a runner or a build process: one call forks a confined process.

The forkserver calls `fork_confined`, which makes two processes:

- the init: trusted code, PID 1 of new namespaces. It builds the mount view, forks the payload,
  keeps no descriptor but the status pipe, and waits for children. When the payload ends, the init
  writes the payload's wait status to that pipe and exits. The kernel then kills every process that
  is left in the namespace, before the caller can wait for the init. The init dies with the
  forkserver.
- the payload: it gives up the rest (limits, capabilities, uid, Landlock, seccomp) and then runs
  the caller's function. Nothing that it sends from then on may be trusted.

If this machine lacks a layer, the sandbox leaves it out, reports the reason, and applies the other
layers. The supervisor reads the reasons before it sends foreign code, and decides whether to go on.

The caller must have one thread. The payload ends in one of two ways:

- The function returns a code, and the process ends at once (`os._exit`).
- The function raises `SystemExit`, and the interpreter is finalised there, with exit handlers and
  destructors, as at the end of a program. Exit handlers of the forkserver run too.

In both cases no frame of the forkserver runs again in the child, nor does its `finally` clause.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from tilewright.runner.sandbox import init, selftests, syscalls
from tilewright.runner.sandbox.policy import Confinement, Main

__all__ = ["Confinement", "Main", "fork_confined", "probe"]


def fork_confined(confinement: Confinement, main: Main, status_fd: int = -1) -> int:
    """Run `main` in a sandbox; return the id of its init.

    `main` gets a text for each of `ISOLATION_LAYERS`: "" for an active layer, else the reason. A
    reason that begins with "partial: " names the parts that an active layer lacks here. When the
    payload has ended, the init writes its wait status to `status_fd` in four bytes, little-endian
    and signed. The pipe ends without them if the payload never started or the init was killed.

    Raises:
        OSError: nothing was forked.
        RuntimeError: the caller has more than one thread, and the child would hang.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"fork_confined needs a process of one thread; this one has {threads}")
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    ids = (os.geteuid(), os.getegid())
    caller = syscalls.open_self()
    try:
        pid, flags, refusal = _clone(confinement)
        if pid == 0:
            init.Sandbox(confinement, main, flags, refusal).run(status_fd, caller, ids)
    finally:
        if caller >= 0:
            os.close(caller)
    return pid


def _clone(confinement: Confinement) -> tuple[int, int, str]:
    """Fork the init into as many of the required namespaces as the kernel grants.

    Returns its id (0 in the init), the namespaces, and the reason why others are missing.
    """
    wanted = 0
    for layer in confinement.layers & init.NAMESPACES.keys():
        wanted |= init.NAMESPACES[layer]
    user = syscalls.CLONE_NEWUSER if wanted else 0
    fewer = wanted & (syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS)
    alone = (wanted, fewer) if os.geteuid() == 0 else ()
    attempts = (*alone, wanted | user, fewer | user if fewer else 0, 0)
    refusal = ""
    for flags in attempts:
        try:
            return syscalls.clone(flags), flags, refusal
        except OSError as error:
            refusal = refusal or str(error)
    raise OSError(f"no process can be forked: {refusal}")


def probe(confinement: Confinement) -> dict[str, str]:
    """Attack a sandbox of `confinement` from inside; return "" for each layer that held.

    For another layer the text says what is missing, and which attack got through. The attack on
    the limit of processes starts at most 16. All of it takes a tenth of a second, or some seconds
    where root keeps its uid. Meanwhile the caller has a further environment variable, listens on a
    local port and keeps a temporary folder.

    Raises:
        OSError: nothing was forked.
    """
    with selftests.bait() as bait:
        tried = selftests.adapt(confinement, bait)
        read_end, write_end = os.pipe()
        alive, held = os.pipe()
        try:
            kept = replace(tried, keep_fds=(write_end, held))
            pid = fork_confined(kept, selftests.payload(bait, kept, write_end))
        finally:
            os.close(write_end)
            os.close(held)
        try:
            found = selftests.collect(read_end)
            os.waitpid(pid, 0)
            found["pid_namespace"] += selftests.survivor(alive)
        finally:
            os.close(read_end)
            os.close(alive)
    return found
