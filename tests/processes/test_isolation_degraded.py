"""The sandbox on machines that lack a feature: it is named, and the rest holds."""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processes.isolation_tools import SOURCE, WHOLE, linux_only, needs_root
from tilewright.runner.sandbox import hardening, landlock, mounts, seccomp, syscalls
from tilewright.runner.sandbox.isolation import fork_confined, probe
from tilewright.wire.names import ISOLATION_LAYERS

NOBODY = 65534
ORDINARY_USER = """
import json, os, sys
from dataclasses import replace
from tilewright.runner.sandbox.isolation import Confinement, probe
whole = Confinement(
    read_only=("/usr", "/lib", "/lib64", "/bin", sys.prefix, sys.base_prefix, {source!r}),
    writable_tmp_bytes=32 << 20, uid=60000, memory_bytes=4 << 30, file_bytes=16 << 20,
    processes=64, descriptors=256, core=(min(os.sched_getaffinity(0)),),
    environment={{"PATH": "/usr/bin"}}, keep_fds=(),
)
print(json.dumps([probe(whole), probe(replace(whole, layers=frozenset()))]))
"""

pytestmark = [linux_only, pytest.mark.one_thread, pytest.mark.alone]


def as_ordinary_user(python: str, code: str) -> subprocess.CompletedProcess[str]:
    user = NOBODY if os.geteuid() == 0 else None
    return subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        user=user,
        group=user,
        extra_groups=[] if user else None,
        cwd="/",
        env={"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_an_ordinary_user_gets_all_layers_but_the_separate_uid() -> None:
    ask = "import sys, tilewright.runner; print(sys.version_info >= (3, 11))"
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            if as_ordinary_user(python, ask).stdout == "True\n":
                break
        except OSError:
            continue
    else:
        pytest.skip("no Python here that an ordinary user can run")
    done = as_ordinary_user(python, ORDINARY_USER.format(source=str(SOURCE)))
    assert done.returncode == 0, done.stderr
    found, found_without = json.loads(done.stdout)
    if "clone" in found["pid_namespace"]:
        pytest.skip(f"no user namespaces here: {found['pid_namespace']}")
    assert found.pop("separate_uid").startswith("not root: uid ")
    # Of pid_max root is the only master; in a user namespace of one's own RLIMIT_NPROC binds.
    assert found == dict.fromkeys(found, "")
    for layer in set(ISOLATION_LAYERS) - {"separate_uid"}:
        assert "got through" in found_without[layer], layer


@needs_root
@pytest.mark.parametrize("kept", [(), (syscalls.CLONE_NEWPID, syscalls.CLONE_NEWNS)])
def test_unavailable_namespaces_are_named(
    kept: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = syscalls.clone

    def poor(flags: int) -> int:
        if flags & ~sum(kept):
            raise PermissionError(errno.EPERM, "clone: none of these")
        return whole(flags)

    monkeypatch.setattr(syscalls, "clone", poor)
    found = probe(WHOLE)
    expected = {"ipc_uts_cgroup_namespaces", "network"} | (
        set() if kept else {"pid_namespace", "mount_namespace"}
    )
    red = {layer for layer, text in found.items() if "none of these" in text}
    assert red == expected
    # What can be done without: a subreaper for the tree, Landlock and seccomp for the network.
    assert "got through" not in found["pid_namespace"]
    assert "a TCP port" not in found["network"]
    for layer in ("file_descriptors", "cpu_affinity", "environment", "landlock", "seccomp"):
        assert found[layer] == ""


@needs_root
@pytest.mark.parametrize(
    ("module", "step", "layer"),
    [(mounts, "build", "mount_namespace"), (landlock, "restrict", "landlock"),
     (seccomp, "install", "seccomp")],
)  # fmt: skip
def test_a_failing_step_is_named_and_the_other_layers_hold(
    module: object, step: str, layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise OSError(errno.ENOSYS, "not in this kernel")

    monkeypatch.setattr(module, step, refuse)
    found = probe(WHOLE)
    assert found[layer].startswith("[Errno 38] not in this kernel; got through: ")
    red = {other for other, text in found.items() if text} - {layer}
    assert red <= {"separate_uid"}


@needs_root
def test_a_failed_pivot_root_leaves_the_host_mounts_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EINVAL, "the root is no mount")

    monkeypatch.setattr(syscalls, "pivot_root", refuse)
    before = Path("/proc/self/mountinfo").read_text()
    found = probe(WHOLE)
    assert "the root is no mount" in found["mount_namespace"]
    assert found["rlimits"] == found["landlock"] == found["seccomp"] == ""
    assert Path("/proc/self/mountinfo").read_text() == before


@needs_root
def test_an_older_kernel_still_gets_a_read_only_view(monkeypatch: pytest.MonkeyPatch) -> None:
    new = {"mount_setattr", "close_range", "pidfd_open"}
    whole = syscalls.syscall

    def old(name: str, *arguments: int) -> int:
        if name in new:
            raise OSError(errno.ENOSYS, name)
        return whole(name, *arguments)

    monkeypatch.setattr(syscalls, "syscall", old)
    monkeypatch.setattr(hardening, "_PID_MAX_IS_OURS", (999, 0))
    found = probe(WHOLE)
    assert found == dict.fromkeys(ISOLATION_LAYERS, "")


@needs_root
def test_missing_paths_are_left_out_and_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "goal").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "goal")
    read_end, write_end = os.pipe()
    paths = (*WHOLE.read_only, "/no/such/path", str(tmp_path / "link"), str(tmp_path / "goal"))

    def look(_: dict[str, str]) -> int:
        seen = [os.path.islink(tmp_path / "link"), os.path.isdir(tmp_path / "link")]
        os.write(write_end, str([*seen, os.path.exists("/no")]).encode())
        return 0

    pid = fork_confined(replace(WHOLE, read_only=paths, keep_fds=(write_end,)), look)
    os.waitpid(pid, 0)
    os.close(write_end)
    with os.fdopen(read_end) as answer:
        assert answer.read() == "[True, True, False]"


def test_a_misspelt_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="netwrok"):
        replace(WHOLE, layers=frozenset({"netwrok"}))


# --- the seccomp filter, run here instead of in the kernel, for both machines


def judge(program: bytes, arch: int, number: int, argument: int = 0) -> int:
    """Return the filter's answer to a call, by following its steps."""
    data = struct.pack("=IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    steps = list(struct.iter_unpack("=HBBI", program))
    word = place = 0
    while True:
        code, if_true, if_false, value = steps[place]
        place += 1
        if code == 0x20:
            (word,) = struct.unpack_from("=I", data, value)
        elif code == 0x54:
            word &= value
        elif code in (0x15, 0x35):
            place += if_true if (word == value if code == 0x15 else word >= value) else if_false
        else:
            return value


ALLOWED, EPERM, ENOSYS, KILLED = 0x7FFF0000, 0x50001, 0x50026, 0x80000000
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_answers_every_call(machine: str) -> None:
    column, arch = MACHINES[machine]
    program = seccomp.program(machine)
    clone, opened = ((56, 220)[column], (41, 198)[column])
    denied = {numbers[column] for numbers in seccomp.DENIED.values()} - {None}
    for number in range(600):
        answer = judge(program, arch, number, argument=socket.AF_UNIX)
        expected = EPERM if number in denied else ENOSYS if number == 435 else ALLOWED
        assert answer == expected, number
    assert judge(program, arch, opened, socket.AF_INET) == EPERM
    assert judge(program, arch, opened, socket.AF_NETLINK) == EPERM
    assert judge(program, arch, clone, 0x3D0F00) == ALLOWED
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert judge(program, arch, clone, flag | 17) == EPERM
    assert judge(program, 0x40000003, 1) == KILLED
    if machine == "x86_64":
        assert judge(program, arch, 0x40000000 | 101) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_the_process_creation_guard_asks_for_forks_and_refuses_timers(machine: str) -> None:
    column, arch = MACHINES[machine]
    program = seccomp.asking_program(machine)
    timers, clone = ((222, 283), (107, 85))[column], (56, 220)[column]
    asked = {clone, 57, 58} if machine == "x86_64" else {clone}
    for number in range(600):
        answer = judge(program, arch, number)
        expected = EPERM if number in timers else ENOSYS if number == 435 else ALLOWED
        assert answer == (0x7FC00000 if number in asked else expected), number
    assert judge(program, arch, clone, 0x3D0F00) == ALLOWED


def test_a_machine_without_a_seccomp_filter_raises() -> None:
    with pytest.raises(OSError, match="no seccomp filter for riscv64"):
        seccomp.program("riscv64")
