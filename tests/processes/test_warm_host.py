"""Warm hosts: real hosts, supervisors and clients, of which some are killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.process_tree import alive, family, until
from tests.processes.evaluations import RIGHT, request
from tilewright.errors import InfrastructureError
from tilewright.evaluator.devices.devices import CPU, plan_cores
from tilewright.evaluator.processes.host import forkserver_plan
from tilewright.executors.host_connection import HostConnector, running_hosts, stop_host
from tilewright.executors.host_messages import HostStatus, connect
from tilewright.executors.local import LocalExecutor
from tilewright.wire.frames import Channel, ChannelClosed

SLOW = "import time\n\ndef work(x):\n    time.sleep(30)\n    return x\n"
PLAN = forkserver_plan(CPU, plan_cores(list(os.sched_getaffinity(0))))
Made = Callable[..., HostConnector]


def state_of(home: Path) -> tuple[Path, HostStatus] | None:
    """Return the socket and the state of the host of a home, if one is up."""
    found = [item for item in running_hosts() if item[1].home == str(home)]
    return found[0] if found else None


def executor(connector: HostConnector) -> LocalExecutor:
    return LocalExecutor(connector.home, attach=connector.attach)


@pytest.fixture
def connector(tmp_path) -> Iterator[Made]:
    """Yield what makes a connector to a host of this test, which is stopped in the end."""

    def make(*arguments: str, starts: bool = True, **variables: str) -> HostConnector:
        environment = {**os.environ, **variables}
        return HostConnector(tmp_path / "home", starts, lambda: environment, arguments)

    yield make
    for path, state in list(running_hosts()):
        if state.home == str(tmp_path / "home"):
            assert stop_host(path)


def in_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_the_second_client_gets_the_supervisor_of_the_first(connector, tmp_path):
    reports, pids = [], []
    for _ in range(2):
        with executor(connector()) as made:
            reports.append(made.evaluate(request(RIGHT)))
            pids.append(made.pid)
        assert until(lambda: state_of(tmp_path / "home")[1].clients == 0)
    with LocalExecutor(tmp_path / "home") as alone:
        own = alone.evaluate(request(RIGHT))
        assert alone.pid not in pids
    assert [report.verdict for report in reports] == ["correct"] * 2
    assert pids[0] == pids[1]
    assert reports[1].environment == own.environment
    assert [item.name for item in reports[1].isolation] == [item.name for item in own.isolation]
    assert state_of(tmp_path / "home")[1].supervisors == 1


def test_two_clients_at_once_get_a_supervisor_each(connector, tmp_path):
    with executor(connector()) as first, executor(connector()) as second:
        first.evaluate(request(RIGHT))
        second.evaluate(request(RIGHT))
        assert first.pid != second.pid
        assert state_of(tmp_path / "home")[1].clients == 2


def test_without_permission_no_host_is_started(connector, tmp_path):
    assert connector(starts=False).attach(PLAN) is None
    assert state_of(tmp_path / "home") is None


def test_other_variables_folders_and_versions_mean_another_host(connector, tmp_path):
    first, again = connector().attach(PLAN), connector().attach(PLAN)
    other = connector(starts=False, TILEWRIGHT_TEST="other").attach(PLAN)
    elsewhere = replace(connector(starts=False), home=tmp_path / "elsewhere").attach(PLAN)
    assert None not in (first, again)
    assert (other, elsewhere) == (None, None)
    for channel in (first, again):
        channel.close()


def test_a_client_that_dies_in_the_middle_takes_its_supervisor_with_it(connector):
    made = executor(connector())
    events: list[str] = []
    errors: list[Exception] = []

    def evaluate() -> None:
        try:
            made.evaluate(request(SLOW), lambda _, fields: events.append(str(fields)))
        except InfrastructureError as error:
            errors.append(error)

    thread = in_thread(evaluate)
    assert until(lambda: any("correctness" in text for text in events))
    below = family(made.pid)
    made.kill()
    thread.join()
    assert "the supervisor was lost" in str(errors[0])
    assert until(lambda: not alive(below))
    with executor(connector()) as other:
        assert other.evaluate(request(RIGHT)).verdict == "correct"
        assert other.pid not in below


def test_a_lost_supervisor_is_replaced_with_one_notice(connector):
    seen: list[str] = []

    def note(event: str, fields: dict[str, object]) -> None:
        seen.append(event)
        if fields.get("stage") == "correctness" and "host_lost" not in seen:
            os.kill(made.pid, signal.SIGKILL)

    with executor(connector()) as made:
        report = made.evaluate(request(RIGHT), note)
        below = family(made.pid)
    assert report.verdict == "correct"
    assert seen.count("host_lost") == 1
    assert until(lambda: not alive(below))


def test_the_death_of_a_host_ends_no_evaluation(connector, tmp_path):
    seen: list[str] = []
    home = tmp_path / "home"

    def note(event: str, fields: dict[str, object]) -> None:
        seen.append(event)
        if fields.get("stage") == "correctness":
            below.update(family(state_of(home)[1].pid))
            os.kill(state_of(home)[1].pid, signal.SIGKILL)

    below: set[int] = set()
    with executor(connector()) as made:
        pid = made.evaluate(request(RIGHT), note) and made.pid
        assert made.evaluate(request(RIGHT)).verdict == "correct"
        assert made.pid == pid
    assert "host_lost" not in seen
    assert until(lambda: not alive(below))
    # The file of its socket is still there, and no hindrance.
    with executor(connector()) as other:
        assert other.evaluate(request(RIGHT)).verdict == "correct"
        assert state_of(home)[1].clients == 1


def test_a_host_without_clients_ends_with_all_its_processes(connector, tmp_path):
    with executor(connector("--idle-s", "0.5")) as made:
        made.evaluate(request(RIGHT))
        path, state = state_of(tmp_path / "home")
        below = family(state.pid)
        time.sleep(1)
        assert state.pid in alive(below)
    assert until(lambda: not alive(below))
    assert not path.exists()


def test_an_idle_supervisor_keeps_only_what_is_imported(connector):
    with executor(connector("--release-s", "0.5")) as made:
        made.evaluate(request(RIGHT))
        # The supervisor and its forkserver remain; judges and preforked runners hold memory.
        assert until(lambda: len(alive(family(made.pid))) == 2)
        assert made.evaluate(request(RIGHT)).verdict == "correct"


def test_a_host_that_was_replaced_ends(connector, tmp_path):
    connector().attach(PLAN).close()
    path, state = state_of(tmp_path / "home")
    command = [sys.executable, "-P", "-m", "tilewright.executors.host_process"]
    subprocess.run([*command, "--socket", path, "--home", tmp_path / "home"], check=True)
    assert until(lambda: not alive([state.pid]))
    assert state_of(tmp_path / "home")[1].pid != state.pid


def test_a_stopped_host_lets_its_clients_go_on(connector, tmp_path):
    seen: list[str] = []

    def note(event: str, fields: dict[str, object]) -> None:
        seen.append(event)
        if fields.get("stage") == "correctness" and "host_lost" not in seen:
            assert stop_host(state_of(tmp_path / "home")[0])

    with executor(connector()) as made:
        assert made.evaluate(request(RIGHT), note).verdict == "correct"
    assert seen.count("host_lost") == 1
    assert state_of(tmp_path / "home") is None


def test_frames_that_are_none_do_not_disturb_a_host(connector, tmp_path):
    connector().attach(PLAN).close()
    path, state = state_of(tmp_path / "home")
    silent = connect(path)
    for data in (b"", b"\xff" * 64, b"\0\0\0\x02{}", b"\0\0\0\x10{"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(str(path))
        sock.sendall(data)
        sock.close()
    assert state_of(tmp_path / "home")[1].pid == state.pid
    silent.close()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_is_not_served(connector, tmp_path):
    connector().attach(PLAN).close()
    path, _ = state_of(tmp_path / "home")
    assert path.parent.stat().st_mode & 0o077 == 0
    # A connection that was opened, as if the folder were open to all.
    code = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); f = os.open(sys.argv[1],"
        " os.O_PATH); os.setuid(65534)\n"
        "try: s.connect(sys.argv[2])\n"
        "except PermissionError: print('refused by the folder')\n"
        "os.fchdir(f); s.connect(os.path.basename(sys.argv[2])); s.sendall(b'x' * 4)\n"
        "print(s.recv(1))\n"
    )
    path.chmod(0o777)
    command = [sys.executable, "-c", code, str(path.parent), str(path)]
    seen = subprocess.run(command, capture_output=True, text=True)
    assert seen.stdout.splitlines()[0] == "refused by the folder"
    assert "PermissionError" in seen.stderr or seen.stdout.splitlines()[1] == "b''"


def test_the_command_line_uses_lists_and_stops_a_host(tmp_path):
    (tmp_path / "mine.py").write_text("def softmax(x):\n    return x.softmax(-1)\n")
    environment = {**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "home")}

    def tilewright(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tilewright", *arguments]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True
        )

    judge = ("eval", "mine.py", "--problem", "softmax", "--set", "eval.timing.enabled=false")
    assert tilewright(*judge).returncode == 0
    assert state_of(tmp_path / "home") is None
    assert tilewright(*judge, "--host").returncode == 0
    listed = json.loads(tilewright("host", "status", "--json").stdout)
    (mine,) = [item for item in listed if item["home"] == str(tmp_path / "home")]
    assert (mine["supervisors"], mine["clients"]) == (1, 0)
    assert tilewright(*judge, "--no-host").returncode == 0
    assert tilewright("host", "stop", str(mine["pid"])).returncode == 0
    assert not alive([mine["pid"]])
    assert tilewright("host", "stop", str(mine["pid"])).returncode == 2


def test_a_closed_connection_is_an_error_of_its_own(connector):
    channel = connector().attach(PLAN)
    assert isinstance(channel, Channel)
    assert channel.receive(time.monotonic() + 20).kind == "up"
    channel.shut_down()
    with pytest.raises(ChannelClosed):
        channel.receive(time.monotonic() + 1)
    channel.close()
