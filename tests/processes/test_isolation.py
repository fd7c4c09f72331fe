"""Each isolation layer stops an attack that succeeds when that layer is off."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.processes.isolation_tools import (
    NONE,
    SOURCE,
    WHOLE,
    linux_only,
    needs_root,
    run,
)
from tilewright.runner.sandbox.isolation import probe
from tilewright.wire.names import ISOLATION_LAYERS

pytestmark = [linux_only, needs_root, pytest.mark.one_thread, pytest.mark.alone]


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process of the host with no part in this."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process.pid
        process.kill()


# --- one attack for each layer: through when the layer is off, all others being on


@functools.cache
def with_all() -> dict[str, str]:
    # No fixture: one of the module would be made before the hook has looked.
    return probe(WHOLE)


@pytest.mark.parametrize("layer", ISOLATION_LAYERS)
def test_a_layer_holds(layer: str) -> None:
    assert with_all()[layer] == ""


@pytest.mark.parametrize("layer", ISOLATION_LAYERS)
def test_an_attack_succeeds_when_its_layer_is_off(layer: str) -> None:
    found = probe(replace(WHOLE, layers=WHOLE.layers - {layer}))
    assert found[layer].startswith("switched off; got through: ")
    red = {other for other, text in found.items() if text} - {layer}
    # Without the view, another uid cannot read a Python under a mode-700 home, and stays root.
    assert red <= ({"separate_uid"} if layer == "mount_namespace" else set())


# --- attacks that several layers stop, each of them alone


def connect(port: int) -> str:
    socket.create_connection(("127.0.0.1", port), 1).close()
    return "done"


def write_beside_python() -> str:
    path = SOURCE / "tilewright-test-file"
    path.write_text("x")
    path.unlink()
    return "done"


def kill(pid: int) -> str:
    os.kill(pid, signal.SIGKILL)
    return "done"


def attach(pid: int) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    seize = 0x4206
    if libc.ptrace(seize, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return "done"


def list_descriptors(pid: int) -> str:
    return "done" if [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()] else "empty"


def enter_namespace(pid: int) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(f"/proc/{pid}/ns/uts", os.O_RDONLY)
    if libc.setns(fd, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    return "done"


def make_namespace() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x20000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    return "done"


def set_core_pattern() -> str:
    setting = Path("/proc/sys/kernel/core_pattern")
    setting.write_text(setting.read_text())
    return "done"


# Landlock leaves /tmp writable, where an environment of a throwaway clone may lie.
BESIDE_PYTHON = (
    ("mount_namespace",)
    if sys.prefix.startswith(("/tmp/", "/dev/shm/"))
    else ("mount_namespace", "landlock")
)
ATTACKS: dict[str, tuple[Callable[[int, int], str], tuple[str, ...]]] = {
    "connect to a port": (lambda _, port: connect(port), ("network", "landlock", "seccomp")),
    "write beside Python": (lambda *_: write_beside_python(), BESIDE_PYTHON),
    "kill a process": (lambda pid, _: kill(pid), ("pid_namespace", "landlock")),
    "trace a process": (lambda pid, _: attach(pid), ("pid_namespace", "landlock", "seccomp")),
    "list its descriptors": (lambda pid, _: list_descriptors(pid), ("landlock",)),
    "enter a namespace": (lambda pid, _: enter_namespace(pid), ("seccomp",)),
    "set up the machine": (lambda *_: set_core_pattern(), ("mount_namespace", "landlock")),
    "make a namespace": (lambda *_: make_namespace(), ("seccomp",)),
}
PLANNED_REPLICATES = [(name, layer) for name, (_, layers) in ATTACKS.items() for layer in layers]


@pytest.mark.parametrize("name", ATTACKS)
def test_without_layers_an_attack_succeeds(name: str, bystander: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert run(NONE, lambda: ATTACKS[name][0](bystander, port)) == "done"


@pytest.mark.parametrize(("name", "layer"), PLANNED_REPLICATES)
def test_a_single_layer_stops_its_attack(name: str, layer: str, bystander: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        only = replace(NONE, layers=frozenset({layer}))
        answer = run(only, lambda: ATTACKS[name][0](bystander, port))
    assert answer.endswith("Error")
    assert Path(f"/proc/{bystander}").exists()


# --- what the payload finds


def test_the_payload_is_the_second_of_two_processes() -> None:
    answer = run(WHOLE, lambda: sorted(name for name in os.listdir("/proc") if name.isdigit()))
    assert answer == "['1', '2']"


def test_a_thread_can_be_named_without_which_cuda_does_not_start() -> None:
    def name_it() -> str:
        Path(f"/proc/self/task/{os.getpid()}/comm").write_text("kernel")
        return Path("/proc/self/comm").read_text().strip()

    assert run(WHOLE, name_it) == "kernel"
    without = replace(WHOLE, layers=WHOLE.layers - {"mount_namespace"})
    assert run(without, name_it) == "kernel"
    assert run(without, lambda: os.path.exists(f"/proc/{os.getppid() + 10_000}")) == "False"


def test_the_init_process_cannot_be_inspected_or_ended() -> None:
    assert run(WHOLE, lambda: Path("/proc/1/environ").read_bytes()) == "PermissionError"
    assert run(WHOLE, lambda: os.listdir("/proc/1/fd")) == "PermissionError"
    assert run(WHOLE, lambda: os.kill(1, signal.SIGKILL)) == "PermissionError"
    same_uid = replace(WHOLE, layers=WHOLE.layers - {"separate_uid", "landlock"})
    assert run(same_uid, lambda: (os.kill(1, signal.SIGKILL), time.sleep(0.1))) == "(None, None)"


def test_signals_environment_and_streams_are_fresh() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    os.environ["TILEWRIGHT_TEST_ONLY"] = "secret"
    try:
        answer = run(
            WHOLE,
            lambda: [
                signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL,
                signal.pthread_sigmask(signal.SIG_BLOCK, ()),
                dict(os.environ),
                Path("/proc/self/environ").read_bytes().strip(b"\0"),
                [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)],
            ],
        )
    finally:
        del os.environ["TILEWRIGHT_TEST_ONLY"]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
        signal.signal(signal.SIGUSR1, before)
    assert answer.startswith(f"[True, set(), {WHOLE.environment}, b'")
    assert b"secret" not in answer.encode()
    assert answer.endswith(f"{['/dev/null'] * 3}]")


def test_a_full_tmp_is_an_error_and_writes_no_host_file() -> None:
    def fill() -> None:
        for number in range(10):
            Path(f"/tmp/{number}").write_bytes(bytes(8 << 20))

    assert run(WHOLE, fill) == "OSError"
    assert not Path("/tmp/0").exists()
    assert run(WHOLE, lambda: os.listdir("/tmp")) != str(os.listdir("/tmp"))
