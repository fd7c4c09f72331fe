"""The sandbox around a judge, a runner or a build process: one call forks a confined process.

The init is trusted code and PID 1 of new namespaces. It builds the mount view, forks the payload,
and waits. When the payload ends, the init writes its wait status to a pipe and exits, and the
kernel kills every process that is left. The payload gives up the rest (limits, capabilities, uid,
Landlock, seccomp) and runs the caller's function. Nothing that it sends then may be trusted.

The sandbox leaves out a layer that this machine lacks, and reports the reason. If the function
returns a code, the process ends at once (`os._exit`). If it raises `SystemExit`, exit handlers and
destructors run first, those of the forkserver too.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from tilewright.runner.sandbox import init, selftests, syscalls
from tilewright.runner.sandbox.policy import Confinement, Main


def fork_confined(confinement: Confinement, main: Main, status_fd: int = -1) -> int:
    """Run `main` in a sandbox of this process of one thread; return the id of the sandbox's init.

    `main` gets a text for each of `ISOLATION_LAYERS`: "" for an active layer, else the reason. A
    reason that begins with "partial: " names the parts that an active layer lacks here. When the
    payload has ended, the init writes its wait status to `status_fd` in four bytes, little-endian
    and signed. The pipe ends without them if the payload never started or the init was killed.
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
    """Fork the init; return its id (0 in the init), its namespaces, and why others are missing."""
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

    For another layer the text says what is missing, and which attack got through. All of it takes a
    tenth of a second, or some seconds where root keeps its uid. Meanwhile the caller has a further
    environment variable, listens on a local port and keeps a temporary folder.
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
