"""`tilewright serve` when a client, its capacity, its port or its file fails."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.services.test_serve import GOOD, QUICK, Server, asked, request, submit
from tilewright.executors.remote import RemoteExecutor
from tilewright.problems.requests import build_request

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
SLOW = (
    "import time\nimport torch\n\n\n"
    "def softmax(x):\n    time.sleep(0.15)\n    return torch.softmax(x, -1)  # {}\n"
)


@pytest.fixture
def made(tmp_path: Path):
    """Return a function that starts a server."""
    servers: list[Server] = []

    def start(*words: str) -> Server:
        servers.append(Server(tmp_path / "home", *words))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            # A stop would wait for the work that a test has left behind.
            server.kill()


def test_disconnected_clients_free_their_connections(made):
    server = made("--set", "serve.connections=10")
    _, task = submit(server, SLOW.format(0))
    for number in range(1, 4):
        submit(server, SLOW.format(number))
    path = f"/v1/tasks/{task['key']}?wait_s=60"
    line = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{server.port}\r\n\r\n".encode()
    for _ in range(12):
        with socket.create_connection(("127.0.0.1", server.port)) as sock:
            sock.sendall(line)
            time.sleep(0.02)
    limit = time.monotonic() + 10
    while asked(f"{server.url}/v1/health")[0] != 200:
        assert time.monotonic() < limit
        time.sleep(0.2)


def test_a_full_server_still_accepts_known_work(made):
    server = made("--set", "serve.max_queue=3", "--workers", "1")
    known = submit(server, GOOD.format("known"))[1]
    assert asked(f"{server.url}/v1/tasks/{known['key']}?wait_s=60")[1]["state"] == "done"
    waiting = []
    for number in range(12):
        status, _ = submit(server, SLOW.format(number))
        waiting += [number] if status == 202 else []
    assert status == 429
    assert submit(server, GOOD.format("known"))[1]["state"] == "done"
    assert submit(server, SLOW.format(waiting[-1]))[0] == 202


def test_an_occupied_port_is_reported_before_any_work(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "tilewright", "serve", "--port", str(port)]
        done = subprocess.run(
            [*command, "--set", f"home={tmp_path}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert f"--port {port}" in done.stderr
    assert "judging on" not in done.stderr


def test_no_task_is_accepted_once_the_store_is_deleted(made, tmp_path):
    server = made()
    assert submit(server, GOOD.format(1))[0] == 202
    for path in (tmp_path / "home" / "serve").glob("tasks.db*"):
        path.unlink()
    status, said = submit(server, GOOD.format(2))
    assert status == 503
    assert "store" in json.loads(said)["detail"]
    assert str(tmp_path) not in said
    assert asked(f"{server.url}/v1/health")[1]["status"] == "store_unavailable"


def test_work_that_is_cancelled_and_resubmitted_at_once_is_judged(made):
    server = made()
    _, task = submit(server, SLOW.format("again"))
    limit = time.monotonic() + 30
    while asked(f"{server.url}/v1/tasks/{task['key']}")[1]["state"] != "running":
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert asked(f"{server.url}/v1/tasks/{task['key']}", method="DELETE")[0] == 200
    assert submit(server, SLOW.format("again"))[0] == 202
    found = asked(f"{server.url}/v1/tasks/{task['key']}?wait_s=60")[1]
    assert (found["state"], found["verdict"]) == ("done", "correct")


def test_a_named_request_is_accepted_again_by_a_server_with_other_limits(made):
    body = {"request": request(GOOD.format(3)).model_dump(mode="json"), "name": "mine"}
    server = made()
    status, first = asked(f"{server.url}/v1/tasks", body)
    server.stop()
    server = made("--set", "eval.limits.total_timeout_s=200")
    status, second = asked(f"{server.url}/v1/tasks", body)
    assert status == 202
    assert second["key"] != first["key"]


def test_clients_that_wait_at_the_end_of_draining_continue_at_the_next_server(made):
    server = made("--set", "serve.shutdown_grace_s=1")
    text = SLOW.format(0).replace("time.sleep(0.5)", "time.sleep(1.2)")
    found = []

    def judge() -> None:
        # Once the server is back it waits for a minute at most.
        with RemoteExecutor(server.url, patience_s=60) as remote:
            found.append(remote.evaluate(build_request(text, "softmax", QUICK)))

    thread = threading.Thread(target=judge)
    thread.start()
    limit = time.monotonic() + 30
    while asked(f"{server.url}/v1/queue")[1]["running"] != 1:
        assert time.monotonic() < limit
        time.sleep(0.05)
    start = time.monotonic()
    server.stop()
    # No ten seconds more for who waits.
    assert time.monotonic() - start < 9
    server.start()
    thread.join(120)
    assert [report.verdict for report in found] == ["correct"]


@pytest.mark.parametrize("field", ["problem", "candidate"])
def test_a_lone_surrogate_is_refused(made, field):
    server = made()
    body = {"request": request(GOOD.format(0)).model_dump(mode="json")}
    body["request"][field]["entry"] = "softmax\ud800"
    status, said = asked(f"{server.url}/v1/tasks", body)
    assert (status, "detail" in said) == (422, True)
    status, _ = asked(f"{server.url}/evaluate/batch", {"batch_id": "\ud800", "tasks": [{}]})
    assert status == 422
