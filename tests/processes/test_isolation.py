"""Every layer of the sandbox stops an attack that gets through as soon as that layer is off."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.contestant import isolation
from tilewright.contestant.isolation import LAYERS, Confinement, fork_confined, probe, seal

SOURCE = Path(isolation.__file__).parents[2]
VIEW = (
    *("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"),
    *(sys.prefix, sys.base_prefix, str(SOURCE)),
)
CORE = min(os.sched_getaffinity(0))
WHOLE = Confinement(
    read_only=VIEW,
    writable_tmp_bytes=32 << 20,
    uid=61_000 + os.getpid() % 1000,
    memory_bytes=4 << 30,
    file_bytes=16 << 20,
    processes=64,
    descriptors=256,
    core=(CORE,),
    environment={"PATH": "/usr/bin", "HOME": "/tmp"},
    keep_fds=(),
)
NONE = replace(WHOLE, layers=frozenset())

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root; see test_isolation_degraded.py"),
]


def run(confinement: Confinement, attack: Callable[[], object]) -> str:
    """Return what `attack` returns in a sandbox, or the name of the error that it raised."""
    read_end, write_end = os.pipe()

    def main(_: dict[str, str]) -> int:
        try:
            answer = str(attack())
        except (OSError, MemoryError) as error:
            answer = type(error).__name__
        os.write(write_end, answer.encode())
        return 0

    try:
        kept = (*confinement.keep_fds, write_end)
        pid = fork_confined(replace(confinement, keep_fds=kept), main)
    finally:
        os.close(write_end)
    with os.fdopen(read_end, "rb") as answer:
        text = answer.read().decode()
    os.waitpid(pid, 0)
    return text


def ends(main: Callable[[dict[str, str]], int], confinement: Confinement = WHOLE) -> bytes:
    """Return what stands on the status pipe after `main` ran."""
    read_end, write_end = os.pipe()
    try:
        pid = fork_confined(confinement, main, status_fd=write_end)
    finally:
        os.close(write_end)
    with os.fdopen(read_end, "rb") as status:
        text = status.read()
    os.waitpid(pid, 0)
    return text


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process of the host with no part in this."""
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        yield process.pid
        process.kill()


# --- one attack for each layer: through when the layer is off, all others being on


@pytest.fixture(scope="module")
def with_all() -> dict[str, str]:
    return probe(WHOLE)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_holds(layer: str, with_all: dict[str, str]) -> None:
    assert with_all[layer] == ""


@pytest.mark.parametrize("layer", LAYERS)
def test_an_attack_gets_through_when_its_layer_is_off(layer: str) -> None:
    found = probe(replace(WHOLE, layers=WHOLE.layers - {layer}))
    assert found[layer].startswith("switched off; got through: ")
    red = {other for other, text in found.items() if text} - {layer}
    # Without the view, another uid cannot read a Python under a mode-700 home, and stays root.
    assert red <= ({"other uid"} if layer == "mount view" else set())


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


ATTACKS: dict[str, tuple[Callable[[int, int], str], tuple[str, ...]]] = {
    "connect to a port": (lambda _, port: connect(port), ("network", "landlock", "seccomp")),
    "write beside Python": (lambda *_: write_beside_python(), ("mount view", "landlock")),
    "kill a process": (lambda pid, _: kill(pid), ("process tree", "landlock")),
    "trace a process": (lambda pid, _: attach(pid), ("process tree", "landlock", "seccomp")),
    "list its descriptors": (lambda pid, _: list_descriptors(pid), ("landlock",)),
    "enter a namespace": (lambda pid, _: enter_namespace(pid), ("seccomp",)),
    "make a namespace": (lambda *_: make_namespace(), ("seccomp",)),
}
PAIRS = [(name, layer) for name, (_, layers) in ATTACKS.items() for layer in layers]


@pytest.mark.parametrize("name", ATTACKS)
def test_without_layers_an_attack_succeeds(name: str, bystander: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert run(NONE, lambda: ATTACKS[name][0](bystander, port)) == "done"


@pytest.mark.parametrize(("name", "layer"), PAIRS)
def test_a_single_layer_stops_it(name: str, layer: str, bystander: int) -> None:
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


def test_the_init_cannot_be_looked_into_or_ended() -> None:
    assert run(WHOLE, lambda: Path("/proc/1/environ").read_bytes()) == "PermissionError"
    assert run(WHOLE, lambda: os.listdir("/proc/1/fd")) == "PermissionError"
    assert run(WHOLE, lambda: os.kill(1, signal.SIGKILL)) == "PermissionError"
    same_uid = replace(WHOLE, layers=WHOLE.layers - {"other uid", "landlock"})
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


def test_a_full_tmp_is_an_error_and_nothing_reaches_the_host(tmp_path: Path) -> None:
    def fill() -> None:
        for number in range(10):
            Path(f"/tmp/{number}").write_bytes(bytes(8 << 20))

    assert run(WHOLE, fill) == "OSError"
    assert not Path("/tmp/0").exists()
    assert run(WHOLE, lambda: os.listdir("/tmp")) != str(os.listdir("/tmp"))
    shared = replace(WHOLE, writable=((str(tmp_path), "/dev/shm"),))
    tmp_path.chmod(0o777)
    run(shared, lambda: Path("/dev/shm/note").write_text("for the judge"))
    assert (tmp_path / "note").read_text() == "for the judge"


def test_sealing_later_binds_threads_that_run_already() -> None:
    confinement = replace(WHOLE, deferred=("other uid", "seccomp"))

    def main(applied: dict[str, str]) -> int:
        go, seen = threading.Event(), list[object]()

        def look() -> None:
            go.wait()
            seen.append(os.getuid())
            try:
                socket.socket(socket.AF_INET)
            except OSError as error:
                seen.append(type(error))

        thread = threading.Thread(target=look)
        thread.start()
        pending = {layer for layer, text in applied.items() if text}
        sealed = seal(confinement, applied)
        go.set()
        thread.join()
        done = [pending == set(confinement.deferred), os.getuid() != 0, not any(sealed.values())]
        return 0 if all(done) and seen == [WHOLE.uid, PermissionError] else 1

    assert ends(main, confinement) == struct.pack("<i", 0)


# --- how it ends


def test_the_status_pipe_tells_how_the_payload_ended() -> None:
    def broken(_: dict[str, str]) -> int:
        raise ValueError("on purpose")

    assert ends(lambda _: 3) == struct.pack("<i", 3 << 8)
    assert ends(lambda _: os.kill(os.getpid(), signal.SIGKILL) or 0) == struct.pack("<i", 9)
    # Here sys.stderr is pytest's, on a descriptor that the payload lacks: even the report fails.
    assert ends(broken) == struct.pack("<i", 70 << 8)


def test_system_exit_finalises_there_and_passes_no_frame_of_the_forkserver() -> None:
    read_end, write_end = os.pipe()

    def leave(_: dict[str, str]) -> int:
        import atexit

        atexit.register(os.write, write_end, b"exit handler ran")
        raise SystemExit(5)

    try:
        status = ends(leave, replace(WHOLE, keep_fds=(write_end,)))
    finally:
        os.write(write_end, b".")
    assert status == struct.pack("<i", 5 << 8)
    assert os.read(read_end, 100) == b"exit handler ran."
    os.close(read_end)
    os.close(write_end)


def test_a_daemon_dies_with_the_payload_and_orphans_are_reaped() -> None:
    def leave_an_orphan() -> list[str]:
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.wait()
        time.sleep(0.1)
        if os.fork() == 0:
            os.setsid()
            # Keeps the pipe that `run` reads to its end, so a survivor would hang the test.
            time.sleep(60)
        return sorted(name for name in os.listdir("/proc") if name.isdigit())[:2]

    started = time.monotonic()
    assert run(WHOLE, leave_an_orphan) == "['1', '2']"
    assert time.monotonic() - started < 10


FORKSERVER = """
    import sys, time
    sys.path.insert(0, {tests!r})
    from test_isolation import WHOLE, fork_confined
    print(fork_confined(WHOLE, lambda _: time.sleep(60) or 0), flush=True)
    time.sleep(60)
"""


def test_everything_dies_with_the_forkserver() -> None:
    code = textwrap.dedent(FORKSERVER.format(tests=str(Path(__file__).parent)))
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forkserver:
        assert forkserver.stdout is not None
        init = int(forkserver.stdout.readline())
        children = Path(f"/proc/{init}/task/{init}/children")
        assert wait_until(lambda: children.read_text() != "", 10)
        payload = int(children.read_text())
        forkserver.kill()
        gone = [Path(f"/proc/{pid}") for pid in (init, payload)]
        assert wait_until(lambda: not any(running(path) for path in gone), 1)


def running(process: Path) -> bool:
    """Say whether it is there and not a zombie, which waits for a reaper beyond our control."""
    try:
        return "State:\tZ" not in (process / "status").read_text()
    except OSError:
        return False


def test_nothing_is_left_after_fifty_runs() -> None:
    def state() -> tuple[object, ...]:
        return (
            Path("/proc/self/mountinfo").read_text(),
            sorted(os.listdir("/proc/self/fd")),
            Path(f"/proc/self/task/{os.getpid()}/children").read_text(),
            {name for name in os.listdir("/tmp") if name.startswith("tilewright-")},
            Path("/proc/sys/kernel/pid_max").read_text(),
            [os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "mnt", "net", "user")],
            os.sched_getaffinity(0),
        )

    before = state()
    for number in range(50):
        assert ends(lambda _, code=number: code) == struct.pack("<i", number << 8)
    probe(WHOLE)
    assert state() == before


COST = """
    import gc, os, sys, time
    sys.path.insert(0, {tests!r})
    import torch
    from test_isolation import NONE, WHOLE, fork_confined, replace
    gc.collect()
    gc.freeze()
    def once(confinement):
        read_end, write_end = os.pipe()
        confinement = replace(confinement, keep_fds=(write_end,))
        started = time.perf_counter()
        pid = fork_confined(confinement, lambda _: os.write(write_end, b"x") and 0)
        os.read(read_end, 1)
        reached = time.perf_counter()
        os.waitpid(pid, 0)
        os.close(read_end)
        os.close(write_end)
        return 1e3 * (reached - started)
    for name, confinement in (("all layers", WHOLE), ("no layer", NONE)):
        taken = sorted(once(confinement) for _ in range(40))
        best, median, p95 = (taken[place] for place in (0, 20, 37))
        print(f"{{name}}: {{best:.1f}} ms at best, median {{median:.1f}}, p95 {{p95:.1f}}")
    status = open("/proc/self/status").read()
    print("resident:", status.split("VmRSS:")[1].split()[0], "kB")
"""


@pytest.mark.slow
def test_the_cost_from_call_to_main(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    code = textwrap.dedent(COST.format(tests=str(Path(__file__).parent)))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    with capsys.disabled():
        print(f"\nfrom fork_confined to main, torch imported:\n{done.stdout}", end="")
    best = float(done.stdout.split("all layers: ")[1].split()[0])
    # The target is 25 ms on an idle machine; tests share theirs.
    assert best < 100
