"""The wall around a judge or a contestant: one call forks a process that can reach nothing.

`fork_confined` makes two processes:

- an init of ours, PID 1 of new namespaces. It builds the mount view, forks the payload, holds no
  descriptor but the status pipe from then on, and reaps. When the payload ends it writes the
  payload's wait status to that pipe and exits, by which the kernel kills all that is left in the
  namespace; once the init can be waited for, nothing of the sandbox runs. It dies with the
  forkserver.
- the payload, which gives up the rest (limits, capabilities, uid, Landlock, seccomp) and then runs
  the caller's function.

A layer that this machine lacks is left out with its reason and the others go on: whether to go on
without it is for the supervisor to decide, who hears of it before any foreign code is sent.

The caller must have one thread. How the payload ends: the function returns a code, and the process
ends at once (`os._exit`); it raises `SystemExit`, and the interpreter is finalised there, with exit
handlers and destructors, as at the end of a program. Either way the frames of the forkserver that
lie above never run again, so their `except` and `finally` clauses need no care; exit handlers that
the forkserver registered do run in the second case.
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

    `main` gets, for each of `ISOLATION_LAYERS`, "" when it is active, or why it is not; a reason
    that begins with "partial: " tells what an active layer lacks here. When the payload has
    ended, its wait status is written to `status_fd` in four bytes, little-endian and signed. The
    pipe ends without them if the payload never started or the init was killed.

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
        pid, flags, trouble = _clone(confinement)
        if pid == 0:
            init.Sandbox(confinement, main, flags, trouble).run(status_fd, caller, ids)
    finally:
        if caller >= 0:
            os.close(caller)
    return pid


def _clone(confinement: Confinement) -> tuple[int, int, str]:
    """Fork the init into as many of the wanted namespaces as can be had.

    Returns its id (0 in the init), the namespaces, and why there are no more.
    """
    wanted = 0
    for layer in confinement.layers & init.NAMESPACES.keys():
        wanted |= init.NAMESPACES[layer]
    user = syscalls.CLONE_NEWUSER if wanted else 0
    fewer = wanted & (syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS)
    alone = (wanted, fewer) if os.geteuid() == 0 else ()
    attempts = (*alone, wanted | user, fewer | user if fewer else 0, 0)
    trouble = ""
    for flags in attempts:
        try:
            return syscalls.clone(flags), flags, trouble
        except OSError as error:
            trouble = trouble or str(error)
    raise OSError(f"no process can be forked: {trouble}")


def probe(confinement: Confinement) -> dict[str, str]:
    """Attack a sandbox of `confinement` from inside; return "" for each layer that held.

    Otherwise what was missing when it was built, and which attack got through. The limit on
    processes is tried with at most 16. Takes a tenth of a second, and
    some seconds where root keeps its uid. For that time it sets an environment variable, listens
    on a local port and keeps a temporary folder.

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
