"""A stand-in for a model's server, and folders of their own for home and run folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.twelve_candidates import reply_to
from tilewright.integrations.packages import PACKAGES, in_range, installed

MAX_RUN_S = 900


def pytest_sessionstart() -> None:
    """End the run if the package is missing for which the environment was made.

    All of its tests would be skipped otherwise. `make test-integrations` names the extra.
    """
    for package in PACKAGES:
        if package.extra == os.environ.get("TESTED_EXTRA"):
            version = installed(package.name)
            if version is None or not in_range(version, package):
                pytest.exit(f"wanted {package.requirement}, installed: {version}", returncode=1)


@dataclass
class ModelServer:
    """A server with the interface of OpenAI, whose replies a function of the prompt chooses."""

    url: str
    choose: Callable[[str], str]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """Yield a running stand-in for a model's server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            text = served.choose(json.dumps(body["messages"]))
            answer = {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": text},
                        "finish_reason": "stop",
                    }
                ],
                "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
            }
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        # Sixteen rollouts connect at once.
        request_queue_size = 128
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    served = ModelServer(f"http://127.0.0.1:{server.server_port}/v1", reply_to)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder which is the current one, with a home in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MODEL_KEY", "none")
    return tmp_path


def program(name: str) -> str:
    """Return the path of a command that is installed beside this Python."""
    return str(Path(sys.executable).parent / name)


def run(*words: str | Path, ok: bool = True, timeout_s: float = MAX_RUN_S) -> str:
    """Run a command; return its output, and fail with it if its status is not the wanted one."""
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    text = done.stdout + done.stderr
    assert (done.returncode == 0) == ok, text[-4000:]
    return text
