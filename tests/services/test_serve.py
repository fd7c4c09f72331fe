"""`tilewright serve` as a process: it waits, refuses, and loses nothing when killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tilewright.config import load
from tilewright.errors import ConfigError, InfrastructureError
from tilewright.executors.remote import RemoteExecutor
from tilewright.problems.requests import build_request
from tilewright.records import EvalRequest

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
pytestmark = pytest.mark.slow
GOOD = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)  # {}\n"
BAD = "def softmax(x):\n    return x + {}\n"
QUICK = load(overrides=["eval.timing.enabled=false"], environ={})


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Server:
    """A server process that can be killed and started again."""

    def __init__(self, home: Path, *words: str, host: str = "127.0.0.1", wait: bool = True) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "tilewright", "serve", "--port", str(self.port)]
        self._command += ["--host", host, *words]
        self._environment = {**os.environ, "TILEWRIGHT_HOME": str(home)}
        self.log = home / "server.txt"
        home.mkdir(exist_ok=True)
        self.start(wait=wait)

    def start(self, *, wait: bool = True) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log
            )
        if wait:
            self.wait()

    def wait(self) -> None:
        limit = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/v1/health", timeout=5).read()
                return
            except (urllib.error.URLError, OSError):
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < limit
                time.sleep(0.05)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def server(tmp_path: Path):
    made = Server(tmp_path / "home")
    yield made
    if made.process.poll() is None:
        made.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    """Yield a server for tests that leave it as it was, but for its finished tasks."""
    made = Server(tmp_path_factory.mktemp("shared") / "home")
    yield made
    made.stop()


def request(text: str) -> EvalRequest:
    return build_request(text, "softmax", QUICK)


def asked(url: str, body: Any = None, method: str | None = None, **headers: str) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    method = method or ("GET" if data is None else "POST")
    made = urllib.request.Request(
        url, data, {"content-type": "application/json", **headers}, method=method
    )
    try:
        with urllib.request.urlopen(made, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(errors="replace")


def submit(server: Server, text: str, **more: Any) -> tuple[int, Any]:
    return asked(
        f"{server.url}/v1/tasks", {"request": request(text).model_dump(mode="json"), **more}
    )


def test_the_server_judges_as_a_local_executor_does(shared):
    remote = RemoteExecutor(shared.url)
    report = remote.evaluate(request(GOOD.format(1)))
    assert (report.verdict, report.request.candidate.files[0].text) == ("correct", GOOD.format(1))
    assert remote.evaluate(request(BAD.format(2))).verdict == "incorrect"


def test_names_conflict_and_tasks_and_metrics_are_listed(server):
    status, task = submit(server, GOOD.format(1), name="mine")
    assert status == 202
    assert submit(server, GOOD.format(1), name="mine")[1]["key"] == task["key"]
    assert submit(server, GOOD.format(2), name="mine")[0] == 409
    status, found = asked(f"{server.url}/v1/tasks/mine?wait_s=60")
    assert (found["state"], found["verdict"]) == ("done", "correct")
    assert len(asked(f"{server.url}/v1/tasks?state=done")[1]) == 1
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=10) as answer:
        assert 'tilewright_ended_total{as="correct"} 1.0' in answer.read().decode()
    assert asked(f"{server.url}/v1/tasks/{'0' * 64}")[0] == 404


@pytest.mark.nightly
def test_a_server_that_is_killed_again_and_again_loses_nothing(server):
    """test_a_client_waits_through_a_restart_of_its_server kills it once."""
    wanted = {}
    for number in range(12):
        text = (BAD if number % 3 == 0 else GOOD).format(number)
        assert submit(server, text, name=f"n{number}")[0] == 202
        wanted[f"n{number}"] = "incorrect" if number % 3 == 0 else "correct"
    for pause in (0.5, 1.5, 3.0):
        time.sleep(pause)
        server.kill()
        server.start()
    found = {name: asked(f"{server.url}/v1/tasks/{name}?wait_s=60")[1] for name in wanted}
    assert {name: task["verdict"] for name, task in found.items()} == wanted


def test_a_client_waits_through_a_restart_of_its_server(server):
    found = {}

    def ask() -> None:
        found["report"] = RemoteExecutor(server.url).evaluate(request(GOOD.format(7)))

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.7)
    server.kill()
    server.start()
    thread.join(120)
    assert found["report"].verdict == "correct"


def test_a_server_finishes_running_tasks_before_it_stops(server):
    submit(server, GOOD.format(1), name="last")
    assert server.stop() == 0
    server.start()
    assert asked(f"{server.url}/v1/tasks/last?wait_s=60")[1]["verdict"] == "correct"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"seed": "0" * 32}, 422),
        ({"candidate": {"allow_imports": ["/etc"]}}, 422),
        ({"problem": {"kind": "nonsense"}}, 422),
        ({"nonsense": 1}, 422),
    ],
)
def test_a_request_that_no_client_may_make_is_refused(shared, change, status):
    body = request(GOOD.format(1)).model_dump(mode="json")
    for name, value in change.items():
        body[name] = {**body[name], **value} if isinstance(value, dict) else value
    assert asked(f"{shared.url}/v1/tasks", {"request": body})[0] == status


def test_bodies_that_are_too_large_or_no_json_are_refused_and_the_server_lives(shared):
    assert asked(f"{shared.url}/v1/tasks", b"x" * (5 << 20))[0] == 413
    for body in (b"", b"{", b"[]", b"\xff\xfe", b'{"request": ' + b"[" * 100_000):
        assert asked(f"{shared.url}/v1/tasks", body)[0] in (400, 422)
    for key in ("../../etc/passwd", "%2e%2e%2f", "a" * 5000, "\\x00"):
        assert asked(f"{shared.url}/v1/tasks/{urllib.request.quote(key)}")[0] in (404, 414)
    assert asked(f"{shared.url}/v1/health")[1]["status"] == "ok"


def test_server_limits_override_those_of_a_request(shared):
    body = request("def softmax(x):\n    while True:\n        pass\n").model_dump(mode="json")
    body["limits"] |= {"call_timeout_s": 2.0, "total_timeout_s": 1e9, "memory_bytes": 1 << 60}
    status, task = asked(f"{shared.url}/v1/tasks", {"request": body})
    assert status == 202
    found = asked(f"{shared.url}/v1/tasks/{task['key']}?wait_s=60")[1]
    assert (found["state"], found["verdict"]) == ("done", "failed")
    report = asked(f"{shared.url}/v1/tasks/{task['key']}/report")[1]
    assert report["request"]["limits"]["memory_bytes"] == QUICK.eval.limits.memory_bytes
    assert report["request"]["limits"]["call_timeout_s"] == 2.0


def test_a_running_task_can_be_cancelled(shared):
    body = request("def softmax(x):\n    while True:\n        pass\n").model_dump(mode="json")
    key = asked(f"{shared.url}/v1/tasks", {"request": body})[1]["key"]
    time.sleep(1.0)
    assert asked(f"{shared.url}/v1/tasks/{key}", method="DELETE")[1]["state"] == "cancelled"
    assert asked(f"{shared.url}/v1/tasks/{key}/report")[0] == 404
    assert RemoteExecutor(shared.url).evaluate(request(GOOD.format("next"))).verdict == "correct"


def token_of(home: Path, name: str, *scopes: str) -> str:
    command = [sys.executable, "-m", "tilewright", "serve", "token", "create", name]
    command += [word for scope in scopes for word in ("--scope", scope)]
    environment = {**os.environ, "TILEWRIGHT_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout.strip()


def test_outside_loopback_a_token_is_required_and_clients_see_only_their_tasks(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    command = [sys.executable, "-m", "tilewright", "serve", "--host", "0.0.0.0"]
    environment = {**os.environ, "TILEWRIGHT_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, "token create" in done.stderr) == (2, True)
    one, two, reader = (
        token_of(home, "one"),
        token_of(home, "two"),
        token_of(home, "reader", "read"),
    )
    assert one not in (home / "serve" / "tokens.json").read_text()
    server = Server(home, host="0.0.0.0")
    try:
        address = f"http://x:{one}@127.0.0.1:{server.port}"
        report = RemoteExecutor(address).evaluate(request(GOOD.format(1)))
        assert report.verdict == "correct"
        with pytest.raises(ConfigError, match="token"):
            RemoteExecutor(server.url).evaluate(request(GOOD.format(1)))
        with pytest.raises(ConfigError, match="token"):
            RemoteExecutor(server.url, token=reader).evaluate(request(GOOD.format(1)))
        rows = asked(f"{server.url}/v1/tasks", authorization=f"Bearer {one}")[1]
        assert len(rows) == 1
        key = rows[0]["key"]
        assert asked(f"{server.url}/v1/tasks", authorization=f"Bearer {two}")[1] == []
        for path in (key, f"{key}/report"):
            assert asked(f"{server.url}/v1/tasks/{path}", authorization=f"Bearer {two}")[0] == 404
        # The overview is for holders of the scope `read`, and lists their own tasks.
        status, seen = asked(f"{server.url}/v1/overview", authorization=f"Bearer {reader}")
        assert (status, seen["recent"], seen["tasks"]) == (200, [], {"done": 1})
        assert sum(sum(item["verdicts"].values()) for item in seen["minutes"]) == 1
        assert asked(f"{server.url}/v1/overview")[0] == 401
        assert asked(f"{server.url}/v1/overview/events")[0] == 401
        # Who can name the work has it too.
        assert RemoteExecutor(server.url, token=two).evaluate(request(GOOD.format(1))) == report
    finally:
        server.stop()


def test_an_unreachable_server_is_named():
    remote = RemoteExecutor(f"http://127.0.0.1:{free_port()}", patience_s=0.5)
    with pytest.raises(InfrastructureError, match="not reached within"):
        remote.evaluate(request(GOOD.format(1)))
    with pytest.raises(ConfigError, match="not an address"):
        RemoteExecutor("nowhere")


@pytest.mark.parametrize("verb", ["eval", "bench", "optimize"])
def test_eval_bench_and_optimize_can_use_a_server(server, tmp_path, verb):
    path = tmp_path / "softmax.py"
    path.write_text(GOOD.format(1))
    words = {
        "eval": [str(path), "--problem", "softmax"],
        "bench": ["softmax", "--candidates", str(path)],
        "optimize": ["rmsnorm", "--model", "recorded:bundled", "--turns", "2"],
    }[verb]
    command = [sys.executable, "-m", "tilewright", verb, *words, "--json", "--out", "runs"]
    command += ["--set", f"executor={server.url}", "--set", "eval.timing.enabled=false"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        # Without a home of its own nothing can have been judged here.
        env={**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "client")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = asked(f"{server.url}/v1/tasks?state=done")[1]
    assert len(rows) == {"eval": 1, "bench": 1, "optimize": 3}[verb]
