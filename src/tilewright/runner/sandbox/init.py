"""The two processes of a sandbox: its init, and the payload that the init forks.

Both run the trusted code of this module first. The payload is untrusted once `main` has run foreign
code; the init never runs any, and the payload cannot reach it.
"""

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
from tilewright.wire.readiness import is_readable

NAMESPACES = {
    # With mounts: CUDA does not start without a /proc of the process's own PID namespace.
    "pid_namespace": syscalls.CLONE_NEWPID | syscalls.CLONE_NEWNS,
    "ipc_uts_cgroup_namespaces": syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWCGROUP,
    "network": syscalls.CLONE_NEWNET,
    "mount_namespace": syscalls.CLONE_NEWNS,
}
# Exit code of an init that started no payload; the status pipe then ends empty.
_NOT_STARTED = 125
# Exit code of a payload whose `main` raised; standard error has the traceback.
_FAILED = 70
_OFF = "switched off"


def become(confinement: Confinement) -> str:
    """Become the other uid, and still die with the parent; return "" or why not."""
    parent = os.getppid()
    reason = hardening.become(confinement.uid)
    # A change of uid hides /proc/self from the process itself, and clears its death signal.
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    hardening.die_with(parent)
    return reason


class Sandbox:
    """The init, and in the process that it forks the payload."""

    def __init__(self, confinement: Confinement, main: Main, flags: int, refusal: str) -> None:
        self.confinement = confinement
        self.main = main
        self.flags = flags
        self.refusal = refusal
        self.applied = dict.fromkeys(ISOLATION_LAYERS, _OFF)
        self.pid_max_missing = ""
        """Why RLIMIT_NPROC alone limits the number of processes."""

    def run(self, status_fd: int, caller: int, ids: tuple[int, int]) -> NoReturn:
        """Be the init: never returns, and ends with the sandbox."""
        try:
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
            if caller >= 0:
                if is_readable(caller):
                    os._exit(_NOT_STARTED)
                os.close(caller)
            hardening.reset_signals()
            os.setsid()
            self.prepare(status_fd, ids)
            # Before the fork, so that the payload can at no moment read this process.
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
            here = os.getpid()
            for _ in range(self.confinement.skipped_pids):
                unused = os.fork()
                if unused == 0:
                    os._exit(0)
                os.waitpid(unused, 0)
            payload = os.fork()
            if payload == 0:
                if status_fd >= 0:
                    os.close(status_fd)
                self._run_payload(here)
            self._wait_for(payload, status_fd)
        finally:
            _end(_NOT_STARTED)

    def _apply(self, layer: str, step: Callable[[], str]) -> None:
        if layer in self.confinement.layers:
            try:
                self.applied[layer] = step()
            except OSError as error:
                self.applied[layer] = str(error)

    def _has(self, flag: int) -> bool:
        return self.flags & flag == flag

    def prepare(self, status_fd: int, ids: tuple[int, int]) -> None:
        """Apply the layers that the payload inherits, or could not apply itself."""
        policy = self.confinement
        unmapped = hardening.map_self(*ids) if self._has(syscalls.CLONE_NEWUSER) else ""
        for layer in ("pid_namespace", "ipc_uts_cgroup_namespaces", "network"):
            has = self._has(NAMESPACES[layer])
            self._apply(layer, partial(str, unmapped if has else self.refusal))
        if self.applied["pid_namespace"] not in ("", _OFF):
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        self._apply("cpu_affinity", lambda: hardening.pin(policy.core))
        self._apply("rlimits", self._limit_all)
        # After the limits: from here on the machine's settings in /proc are read-only.
        self._apply("mount_namespace", self._build_view)
        if self.applied["mount_namespace"] and self.applied["pid_namespace"] == "":
            self._apply("pid_namespace", _see_own_processes)
        # After the view, so that /dev/null is the one in it.
        self._apply("file_descriptors", lambda: hardening.keep_only((*policy.keep_fds, status_fd)))

    def _limit_all(self) -> str:
        own = self._has(syscalls.CLONE_NEWPID)
        self.pid_max_missing = hardening.limit_pids(self.confinement.processes, own_namespace=own)
        return hardening.volunteer_for_oom()

    def _build_view(self) -> str:
        if not self._has(syscalls.CLONE_NEWNS):
            return self.refusal
        mounts.build(self.confinement, self._has(syscalls.CLONE_NEWPID))
        return ""

    def _wait_for(self, payload: int, status_fd: int) -> None:
        """Wait until the payload has ended, write its status, and end the sandbox."""
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

    def _run_payload(self, init: int) -> NoReturn:
        """Be the payload: never returns."""
        code = _FAILED
        try:
            hardening.die_with(init)
            os.setsid()
            self.give_up()
            code = self.main(dict(self.applied))
        except SystemExit as request:
            _finalise(request)
        finally:
            _end(code)

    def give_up(self) -> None:
        """Apply the layers that the payload applies to itself, before any foreign code."""
        policy = self.confinement
        os.chdir("/tmp" if self.applied["mount_namespace"] == "" else "/")
        self._apply("environment", lambda: hardening.replace_environment(policy.environment))
        self._limit_payload()
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        self._apply("landlock", lambda: landlock.restrict(self._rules()))
        self._apply("separate_uid", lambda: become(policy))
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        # RLIMIT_NPROC does not apply to root.
        own_user = self._has(syscalls.CLONE_NEWUSER) or self.applied["separate_uid"] == ""
        if self.applied["rlimits"] != _OFF and not own_user:
            self._note_limits(self.pid_max_missing)
        self._apply("seccomp", seccomp.install)
        self._apply("process_creation_guard", seccomp.can_listen)

    def _limit_payload(self) -> None:
        if self.applied["rlimits"] == _OFF:
            return
        policy = self.confinement
        limits = {
            resource.RLIMIT_DATA: policy.memory_bytes,
            resource.RLIMIT_FSIZE: policy.file_bytes,
            resource.RLIMIT_NOFILE: policy.descriptors,
            # One byte: with 0 the kernel would still pipe a core dump to a handler.
            resource.RLIMIT_CORE: 1,
            resource.RLIMIT_RTPRIO: 0,
        }
        # With a uid of the host, the limit would count other processes of that user.
        if os.geteuid() == 0 or self._has(syscalls.CLONE_NEWUSER):
            limits[resource.RLIMIT_NPROC] = policy.processes
        self._note_limits(hardening.limit(limits))

    def _note_limits(self, reason: str) -> None:
        self.applied["rlimits"] = "; ".join(filter(None, (self.applied["rlimits"], reason)))

    def _rules(self) -> list[tuple[str, int]]:
        """Return the paths that Landlock allows, with their rights."""
        policy = self.confinement
        rules = [(path, landlock.READ_AND_RUN) for path in policy.read_only]
        rules += [(path, landlock.READ) for path in ("/proc", *mounts.DEVICES)]
        # The CUDA driver writes the names of its threads there, and does not start without it.
        rules.append(("/proc/self", landlock.READ | landlock.WRITE_FILE | landlock.TRUNCATE))
        rules.append(("/dev/null", landlock.WRITE))
        rules += [(path, landlock.DEVICE) for path in policy.devices]
        rules += [(path, landlock.WRITE) for path in mounts.WRITABLE]
        if self.applied["mount_namespace"] == "":
            rules.append(("/", landlock.READ_DIR))
        return rules


def _see_own_processes() -> str:
    """Cover the host's /proc with one of the caller's own PID namespace."""
    try:
        mounts.leave_host()
        mounts.mount_proc("/proc", True)
    except OSError as error:
        return f"partial: the host's /proc is visible: {error}"
    return ""


def _end(code: int) -> NoReturn:
    """Print the current error, if any, and end the process at once.

    No frame of the forkserver runs in this process again, even if the printing fails.
    """
    try:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
    finally:
        os._exit(code)


def _finalise(request: SystemExit) -> None:
    """End the process as the interpreter does on this uncaught exception."""
    code = request.code
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    syscalls.exit_interpreter(code or 0)
