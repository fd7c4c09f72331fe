"""End to end with a tiny model behind `transformers serve`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.tiny_model import make_tiny_model

pytest.importorskip("transformers")
pytest.importorskip("uvicorn")
pytest.importorskip("openai")
START_S = 120.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield the address of a running server and the name of its model."""
    folder = make_tiny_model(tmp_path_factory.mktemp("served"), positions=4096)
    port = free_port()
    script = Path(sys.executable).parent / "transformers"
    command = [str(script), "serve", str(folder), "--port", str(port), "--device", "cpu"]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    log = open(tmp_path_factory.mktemp("log") / "server.txt", "wb")  # noqa: SIM115
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + START_S
        while True:
            try:
                urllib.request.urlopen(f"{url}/health", timeout=2).read()
                break
            except (urllib.error.URLError, OSError):
                if process.poll() is not None or time.monotonic() > until:
                    text = Path(log.name).read_text(errors="replace")[-2000:]
                    pytest.fail(f"the server did not start: {text}")
                time.sleep(0.5)
        yield f"{url}/v1", str(folder)
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def test_a_model_behind_transformers_serve_answers_turn_after_turn(server, tmp_path):
    url, model = server
    command = [sys.executable, "-m", "tilewright", "optimize", "softmax", "--model", model]
    command += ["--base-url", url, "--turns", "2", "--json", "--out", str(tmp_path)]
    command += ["--set", "model.max_tokens=20"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, cwd=tmp_path, check=False
    )
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["turns"] == 2
    assert document["winners"] == {}
    assert document["spent"]["tokens"] > 40
    events = (Path(document["run"]) / "events.jsonl").read_text().splitlines()
    replies = [json.loads(e)["turn"]["reply"] for e in events if '"turn_finished"' in e[:28]]
    assert [0 < reply["reply_tokens"] <= 20 for reply in replies] == [True, True]
