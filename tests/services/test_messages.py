"""Bad inputs: each gets the golden message, and no text that only a programmer can read."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import tilewright
from tests.conventions.tree import ROOT
from tests.processes.bad_files import write_bad_files
from tests.services.test_serve import Server, free_port
from tilewright.cli.main import cli
from tilewright.errors import TilewrightError
from tilewright.problems.imported_sets import problem_set

pytest.importorskip("fastapi")
pytest.importorskip("torch")
pytestmark = pytest.mark.timeout(120)
ERROR = "tilewright: error: "
ROWS: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests/golden/messages.yaml").read_text())
FORBIDDEN = (
    *("Errno", "pydantic", "validation error", "Traceback", "type=", "object at 0x", "<class "),
    *("errors.pydantic.dev", str(ROOT), str(Path.home()), "site-packages"),
)


def title(row: dict[str, Any]) -> str:
    found = row.get("command") or row.get("python") or f"{row['http']} {row.get('body', '')}"
    return str(found)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Yield what the rows name in braces: a server, a port in use, and one that nobody uses."""
    folder = tmp_path_factory.mktemp("bad")
    write_bad_files(folder)
    server = Server(folder / "server", "--set", "eval.timing.enabled=false")
    # On this address each client needs a token.
    CliRunner().invoke(cli, ["serve", "token", "create", "me", "--set", f"home={folder / 'with'}"])
    guarded = Server(folder / "with", host="0.0.0.0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        yield {
            "url": server.url,
            "guarded": guarded.url,
            "taken": port,
            "closed": str(free_port()),
            "folder": str(folder),
            "repository": problem_set("kernelbench").repository,
        }
    server.stop()
    guarded.stop()


def filled(text: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def of_command(text: str, environment: dict[str, str]) -> tuple[int, str, str]:
    """Return the exit code, the messages of errors, and all that the command printed."""
    answer = CliRunner().invoke(cli, shlex.split(text), env=environment)
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    lines = [line for line in answer.stderr.splitlines() if line.startswith(ERROR)]
    return answer.exit_code, "\n".join(lines).replace(ERROR, ""), answer.output


def of_python(text: str, places: dict[str, str]) -> tuple[int, str]:
    try:
        value = eval(text, {"tilewright": tilewright, **places})
    except TilewrightError as error:
        return error.exit_code, str(error)
    return 0, repr(value)


def of_http(row: dict[str, Any], url: str) -> tuple[int, str]:
    method, path = row["http"].split()
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    body = row.get("body")
    connection.request(method, path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    detail = found["detail"]
    return answer.status, "; ".join(item["msg"] for item in detail) if isinstance(
        detail, list
    ) else detail


@pytest.mark.parametrize("row", ROWS, ids=title)
def test_a_bad_input_gets_the_golden_message(row, places, monkeypatch):
    if row.get("without_gpu") and shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    monkeypatch.chdir(places["folder"])
    monkeypatch.setenv("TILEWRIGHT_HOME", os.path.join(places["folder"], "home"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    output = ""
    if "command" in row:
        words = filled(row["command"], places)
        code, message, output = of_command(words, row.get("environment", {}))
    elif "python" in row:
        code, message = of_python(filled(row["python"], places), places)
    else:
        code, message = of_http(row, places["url"])
    assert (code, message) == (row["exit"], filled(row["message"], places)), output
    for word in FORBIDDEN:
        assert word not in message + output


@pytest.mark.parametrize("row", [row for row in ROWS if "command" in row][::30], ids=title)
def test_a_process_of_its_own_answers_the_same(row, places):
    # The others run in this process: each start of one takes half a second.
    words = [sys.executable, "-m", "tilewright", *shlex.split(row["command"])]
    home = {"TILEWRIGHT_HOME": os.path.join(places["folder"], "home")}
    environment = {**os.environ, **home, **row.get("environment", {})}
    done = subprocess.run(
        words,
        cwd=places["folder"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    message = filled(row["message"], places).replace("(tilewright ", "(python -m tilewright ")
    assert (done.returncode, done.stderr) == (row["exit"], f"{ERROR}{message}\n")


def test_there_are_enough_rows_and_none_twice():
    assert len(ROWS) >= 60
    assert len({title(row) for row in ROWS}) == len(ROWS)
