"""Each step of a sandbox alone, in a fork: an action is tried before and after it."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processes.isolation_tools import WHOLE, linux_only, needs_root
from tests.run_in_fork import in_fork
from tilewright.runner.sandbox import hardening, init, landlock, seccomp, selftests, syscalls

pytestmark = [linux_only, needs_root]
UID = 61_500


def refusal(attempt: Callable[[], object]) -> str:
    """Return the name of the error with which the kernel refused, or an empty text."""
    try:
        attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, "?")
    return ""


def test_signals_are_those_of_a_fresh_interpreter():
    def step() -> tuple[object, ...]:
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        hardening.reset_signals()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGPIPE), blocked

    assert in_fork(step) == (signal.SIG_DFL, signal.SIG_IGN, set())


def test_a_child_dies_with_its_parent():
    def step() -> bool:
        reader, writer = os.pipe()
        parent = os.fork()
        if parent == 0:
            here = os.getpid()
            if os.fork() == 0:
                hardening.die_with(here)
                os.write(writer, b"x")
                time.sleep(30)
                os._exit(0)
            os.read(reader, 1)
            os._exit(0)
        os.close(writer)
        os.waitpid(parent, 0)
        # The pipe ends when its last writer, the grandchild, is gone.
        return os.read(reader, 1) == b""

    assert in_fork(step)


def test_a_child_of_another_parent_exits_at_once():
    def step() -> int:
        child = os.fork()
        if child == 0:
            hardening.die_with(1)
            os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert in_fork(step) == 1


def test_all_but_the_named_descriptors_are_closed(tmp_path):
    (tmp_path / "file").write_text("x")

    def step() -> tuple[str, str, str]:
        kept = os.open(tmp_path / "file", os.O_RDONLY)
        other = os.open(tmp_path / "file", os.O_RDONLY)
        pipes = [int(name) for name in os.listdir("/proc/self/fd") if _is_pipe(int(name))]
        reason = hardening.keep_only((kept, *pipes))
        assert os.fstat(0).st_rdev == os.stat("/dev/null").st_rdev
        return reason, refusal(lambda: os.fstat(kept)), refusal(lambda: os.fstat(other))

    assert in_fork(step) == ("", "", "EBADF")


def _is_pipe(fd: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:")
    except OSError:
        return False


def test_cpu_affinity_is_set_or_its_refusal_reported():
    core = min(os.sched_getaffinity(0))

    def step() -> tuple[str, set[int], str, str]:
        return (
            hardening.pin((core,)),
            os.sched_getaffinity(0),
            hardening.pin(None),
            hardening.pin((100_000,)),
        )

    done, cores, unnamed, absent = in_fork(step)
    assert (done, cores) == ("", {core})
    assert unnamed == "no cores were named"
    assert absent


def test_limits_are_set_and_never_raised():
    def step() -> tuple[str, tuple[int, int], tuple[int, int]]:
        first = hardening.limit({resource.RLIMIT_NOFILE: 100, resource.RLIMIT_CORE: 1})
        hardening.limit({resource.RLIMIT_NOFILE: 200})
        nofile = resource.getrlimit(resource.RLIMIT_NOFILE)
        return first, nofile, resource.getrlimit(resource.RLIMIT_CORE)

    reason, nofile, core = in_fork(step)
    assert (reason, nofile) == ("", (100, 100))
    assert core[0] <= 1


def test_pid_max_is_set_only_in_an_own_namespace():
    assert hardening.limit_pids(5, own_namespace=False) == "pid_max: no PID namespace"


def test_a_process_offers_itself_to_the_oom_killer():
    def step() -> tuple[str, str]:
        reason = hardening.volunteer_for_oom()
        return reason, Path("/proc/self/oom_score_adj").read_text().strip()

    assert in_fork(step) == ("", "1000")


def test_a_separate_uid_has_no_capability_and_reads_no_private_file(tmp_path):
    private = tmp_path / "private"
    private.write_text("secret")
    private.chmod(0o600)

    def step() -> tuple[str, int, str, str]:
        reason = hardening.become(UID)
        status = Path("/proc/self/status").read_text()
        effective = next(line for line in status.splitlines() if line.startswith("CapEff"))
        return reason, os.geteuid(), effective.split()[1].strip("0"), refusal(private.read_text)

    reason, uid, capabilities, refused = in_fork(step)
    if not reason:
        assert (uid, refused) == (UID, "EACCES")
    assert capabilities == ""


def test_an_ordinary_user_keeps_its_uid_and_reports_it():
    def step() -> str:
        os.seteuid(UID)
        try:
            return hardening.become(UID + 1)
        finally:
            os.seteuid(0)

    assert in_fork(step) == f"not root: uid {UID} cannot become another"


def test_the_environment_is_replaced_for_python_c_and_proc():
    def step() -> tuple[str, dict[str, str], bool]:
        reason = hardening.replace_environment({"PATH": "/usr/bin"})
        shown = Path("/proc/self/environ").read_bytes()
        return reason, dict(os.environ), b"HOME=" in shown

    assert in_fork(step) == ("", {"PATH": "/usr/bin"}, False)


def test_children_of_a_subreaper_are_killed_to_the_last():
    def step() -> bool:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(30)
            time.sleep(30)
            os._exit(0)
        os.close(writer)
        hardening.kill_children()
        return os.read(reader, 1) == b""

    assert in_fork(step)


def test_landlock_allows_what_its_rules_state(tmp_path):
    (tmp_path / "file").write_text("x")
    rules = [(path, landlock.READ_AND_RUN) for path in (sys.prefix, sys.base_prefix, "/usr")]
    rules += [("/proc", landlock.READ), ("/nowhere", landlock.READ)]
    rules += [(str(tmp_path / "file"), landlock.READ_DIR | landlock.READ_FILE)]

    def step() -> tuple[int, str, str, str, str]:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        version = landlock.version()
        reason = landlock.restrict(rules)
        return (
            version,
            reason,
            refusal((tmp_path / "file").read_text),
            refusal(lambda: (tmp_path / "file").write_text("y")),
            refusal(lambda: os.listdir("/etc")),
        )

    try:
        landlock.version()
    except OSError:
        pytest.skip("no Landlock here")
    version, reason, read, write, listing = in_fork(step)
    assert (read, write, listing) == ("", "EACCES", "EACCES")
    assert bool(reason) is (version < 6)


def test_features_missing_in_an_old_landlock_are_named():
    assert "TCP" in landlock.missing(3)
    assert landlock.missing(6) == ""


def test_seccomp_refuses_what_a_kernel_never_needs():
    def step() -> tuple[str, str]:
        syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        reason = seccomp.install()
        return reason, selftests.forbidden_calls()

    assert in_fork(step) == ("", "")


def test_files_are_closed_on_a_kernel_without_close_range(monkeypatch):
    def step() -> str:
        fd = os.open("/dev/null", os.O_RDONLY)
        monkeypatch.setitem(syscalls.NUMBERS, "close_range", (9999, 9999))
        syscalls.close_all_but({n for n in range(400) if n != fd})
        return refusal(lambda: os.fstat(fd))

    assert in_fork(step) == "EBADF"


def test_mount_flags_are_set_on_a_kernel_without_mount_setattr(monkeypatch, tmp_path):
    def step() -> tuple[str, str]:
        assert ctypes.CDLL(None).unshare(syscalls.CLONE_NEWNS) == 0
        syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
        syscalls.mount("none", str(tmp_path), "tmpfs", 0)
        monkeypatch.setitem(syscalls.NUMBERS, "mount_setattr", (9999, 9999))
        before = refusal(lambda: (tmp_path / "one").write_text("x"))
        syscalls.restrict_mount(str(tmp_path), syscalls.MS_RDONLY, recursive=True)
        return before, refusal(lambda: (tmp_path / "two").write_text("x"))

    assert in_fork(step) == ("", "EROFS")


def test_an_aborted_self_test_reports_that_no_layer_holds():
    reader, writer = os.pipe()
    os.close(writer)
    try:
        assert set(selftests.collect(reader).values()) == {"the self-test broke off"}
    finally:
        os.close(reader)


def test_a_daemon_that_outlives_its_sandbox_is_detected():
    reader, writer = os.pipe()
    try:
        assert "outlived" in selftests.survivor(reader)
        os.close(writer)
        assert selftests.survivor(reader) == ""
    finally:
        os.close(reader)


def test_the_payload_drops_the_privileges_that_its_layers_name():
    def step() -> dict[str, str]:
        box = init.Sandbox(WHOLE, lambda _: 0, 0, "no namespaces here")
        pipes = tuple(int(n) for n in os.listdir("/proc/self/fd") if _is_pipe(int(n)))
        box.confinement = replace(WHOLE, keep_fds=pipes)
        box.prepare(-1, (0, 0))
        box.give_up()
        return box.applied

    applied = in_fork(step)
    assert {name for name, reason in applied.items() if "no namespaces" in reason} >= {
        "ipc_uts_cgroup_namespaces",
        "network",
        "mount_namespace",
    }
    for layer in ("file_descriptors", "cpu_affinity", "environment", "landlock", "seccomp"):
        assert applied[layer] == "" or applied[layer].startswith("partial")
