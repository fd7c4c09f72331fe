"""The two processes of a sandbox: its init, and the payload that the init forks."""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from tilewright.runner.sandbox import hardening, landlock, mounts, seccomp, syscalls
from tilewright.runner.sandbox.policy import Confinement, Main
from tilewright.wire.names import ISOLATION_LAYERS

NAMESPACES = {
    # The mounts, too: a process without a /proc of its own PID namespace cannot start CUDA.
    "pid_namespace": syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS,
    "ipc_uts_cgroup_namespaces": syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP,
    "network": syscalls.CLONE_NEWNET,
    "mount_namespace": syscalls.CLONE_NEWNS,
}
# The program was not started; the status pipe then ends without a word.
_NOT_STARTED = 125
# An error came out of `main`; it stands on standard error.
_FAILED = 70
_OFF = "switched off"


def guarded(step: Callable[[], str]) -> str:
    """Return what `step` returns, or the reason for which the kernel refused it."""
    try:
        return step()
    except OSError as error:
        return str(error)


def become(confinement: Confinement) -> str:
    """Become the other uid, and still die with the parent; return "" or why not."""
    parent = os.getppid()
    reason = hardening.become(confinement.uid)
    # A change of uid hides /proc/self from the process itself, and disarms the parent's death.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    hardening.die_with(parent)
    return reason


class Sandbox:
    """The init, and in the process that it forks the payload."""

    def __init__(self, confinement: Confinement, main: Main, flags: int, trouble: str) -> None:
        self.confinement = confinement
        self.main = main
        self.flags = flags
        self.trouble = trouble
        self.applied = dict.fromkeys(ISOLATION_LAYERS, _OFF)
        self.unbounded = ""
        """Why the number of processes has no bound but RLIMIT_NPROC."""

    def run(self, status_fd: int, caller: int, ids: tuple[int, int]) -> NoReturn:
        """Be the init: never returns, and ends with the sandbox."""
        try:
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
            if caller >= 0:
                if syscalls.has_ended(caller):
                    os._exit(_NOT_STARTED)
                os.close(caller)
            hardening.reset_signals()
            os.setsid()
            self._prepare(status_fd, ids)
            # Before the fork, so that the payload finds no moment at which it may look in here.
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
            here = os.getpid()
            for _ in range(self.confinement.skipped_pids):
                _use_up_pid()
            payload = os.fork()
            if payload == 0:
                if status_fd >= 0:
                    os.close(status_fd)
                self._play(here)
            self._wait_for(payload, status_fd)
        finally:
            _end(_NOT_STARTED)

    def _apply(self, layer: str, step: Callable[[], str]) -> None:
        if layer in self.confinement.layers:
            self.applied[layer] = guarded(step)

    def _has(self, flag: int) -> bool:
        return self.flags & flag == flag

    def _prepare(self, status_fd: int, ids: tuple[int, int]) -> None:
        """Do what the payload could not do for itself, or inherits."""
        wanted = self.confinement
        unmapped = hardening.map_self(*ids) if self._has(syscalls.CLONE_NEWUSER) else ""
        for layer in ("pid_namespace", "ipc_uts_cgroup_namespaces", "network"):
            has = self._has(NAMESPACES[layer])
            self._apply(layer, partial(str, unmapped if has else self.trouble))
        if self.applied["pid_namespace"] not in ("", _OFF):
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        self._apply("cpu_affinity", lambda: hardening.pin(wanted.core))
        self._apply("rlimits", self._limit_all)
        # After those, since the machine's settings in /proc are read-only from then on.
        self._apply("mount_namespace", self._build_view)
        if self.applied["mount_namespace"] and self.applied["pid_namespace"] == "":
            self._apply("pid_namespace", _see_own_processes)
        # After the view, so that /dev/null is the one in it.
        self._apply("file_descriptors", lambda: hardening.keep_only((*wanted.keep_fds, status_fd)))

    def _limit_all(self) -> str:
        own = self._has(syscalls.CLONE_NEWPID)
        self.unbounded = hardening.limit_pids(self.confinement.processes, own_namespace=own)
        return hardening.volunteer_for_oom()

    def _build_view(self) -> str:
        if not self._has(syscalls.CLONE_NEWNS):
            return self.trouble
        wanted = self.confinement
        mounts.build(
            mounts.View(
                wanted.read_only,
                wanted.devices,
                wanted.writable_tmp_bytes,
                own_proc=self._has(syscalls.CLONE_NEWPID),
            )
        )
        return ""

    def _wait_for(self, payload: int, status_fd: int) -> None:
        """Reap until the payload has ended, then say how, and end the sandbox."""
        syscalls.close_all_but({status_fd})
        own = self._has(syscalls.CLONE_NEWPID)
        if own:
            syscalls.drop_capabilities()
        pid, status = os.waitpid(-1, 0)
        while pid != payload:
            pid, status = os.waitpid(-1, 0)
        if not own and self.applied["pid_namespace"] != _OFF:
            hardening.kill_children()
        if status_fd >= 0:
            os.write(status_fd, struct.pack("<i", status))
        os._exit(0)

    def _play(self, init: int) -> NoReturn:
        """Be the payload: never returns."""
        code = _FAILED
        try:
            hardening.die_with(init)
            os.setsid()
            self._give_up()
            code = self.main(dict(self.applied))
        except SystemExit as asked:
            _finalise(asked)
        finally:
            _end(code)

    def _give_up(self) -> None:
        wanted = self.confinement
        os.chdir("/tmp" if self.applied["mount_namespace"] == "" else "/")
        self._apply("environment", lambda: hardening.replace_environment(wanted.environment))
        self._limit_payload()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        self._apply("landlock", lambda: landlock.restrict(self._rules()))
        self._apply("separate_uid", lambda: become(wanted))
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        if self.applied["rlimits"] != _OFF and not self._counts_own_processes():
            self.applied["rlimits"] = "; ".join(
                filter(None, (self.applied["rlimits"], self.unbounded))
            )
        self._apply("seccomp", seccomp.install)
        self._apply("process_creation_guard", seccomp.can_listen)

    def _limit_payload(self) -> None:
        if self.applied["rlimits"] == _OFF:
            return
        wanted = self.confinement
        bounds = {
            resource.RLIMIT_DATA: wanted.memory_bytes,
            resource.RLIMIT_FSIZE: wanted.file_bytes,
            resource.RLIMIT_NOFILE: wanted.descriptors,
            # One byte, not none: with 0 the kernel would still feed a core to a piped handler.
            resource.RLIMIT_CORE: 1,
            resource.RLIMIT_RTPRIO: 0,
        }
        # Where the uid is shared with the host, its other processes would be counted in.
        if os.geteuid() == 0 or self._has(syscalls.CLONE_NEWUSER):
            bounds[resource.RLIMIT_NPROC] = wanted.processes
        reasons = (self.applied["rlimits"], hardening.limit(bounds))
        self.applied["rlimits"] = "; ".join(filter(None, reasons))

    def _counts_own_processes(self) -> bool:
        """Say whether RLIMIT_NPROC binds: root is exempt from it."""
        return self._has(syscalls.CLONE_NEWUSER) or self.applied["separate_uid"] == ""

    def _rules(self) -> list[tuple[str, int]]:
        """Return what Landlock lets through."""
        wanted = self.confinement
        viewed = self.applied["mount_namespace"] == ""
        rules = [(path, landlock.READ_AND_RUN) for path in wanted.read_only]
        rules += [(path, landlock.READ) for path in ("/proc", *mounts.DEVICES)]
        # The names of the threads; the CUDA driver does not start without.
        rules.append(("/proc/self", landlock.READ | landlock.WRITE_FILE | landlock.TRUNCATE))
        rules.append(("/dev/null", landlock.WRITE))
        rules += [(path, landlock.DEVICE) for path in wanted.devices]
        rules += [(path, landlock.WRITE) for path in mounts.WRITABLE]
        if viewed:
            rules.append(("/", landlock.READ_DIR))
        return rules


def _use_up_pid() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def _see_own_processes() -> str:
    """Cover the host's /proc with one of the caller's own PID namespace."""
    try:
        mounts.leave_host()
        mounts.mount_own_proc("/proc")
    except OSError as error:
        return f"partial: the host's /proc is seen: {error}"
    return ""


def _end(code: int) -> NoReturn:
    """End the process at once, after showing the error that led here, if any.

    Whatever fails on the way, no frame of the forkserver runs in this process again.
    """
    try:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
    finally:
        os._exit(code)


def _finalise(asked: SystemExit) -> None:
    """End the process as the interpreter does on an uncaught `asked`."""
    code = asked.code
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    syscalls.exit_interpreter(code or 0)
