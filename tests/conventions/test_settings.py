"""Every setting does something: code of the package reads it, by its class and its field."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conventions.setting_reads import FOLDER, TREES, qualified
from tests.conventions.tree import ROOT, python_files
from tests.services.test_serve import QUICK, Server, asked, token_of
from tilewright.config import leaves
from tilewright.problems.requests import build_request

MARK = "reads_settings"
HONEST = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)\n"
FENCED = f"```python\n{HONEST}```\n"


class RecordedServer(Server):
    """A server of a process that records its reads."""

    def start(self, *, wait: bool = True) -> None:
        assert self._command[1:3] == ["-m", "tilewright"]
        self._command[2] = "tests.conventions.setting_reads"
        super().start(wait=wait)


def recorded_tests(folder: Path) -> None:
    """Run every test that has the mark, in a process that records its reads.

    `make test` leaves these tests to this one.
    """
    marked = [
        str(path)
        for path in python_files(under=ROOT / "tests")
        if f"mark.{MARK}" in path.read_text(encoding="utf-8")
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-m", MARK, "-p", "no:cacheprovider"]
    answer = subprocess.run(
        [*command, "-p", "tests.conventions.setting_reads", *marked],
        cwd=ROOT,
        env={**os.environ, FOLDER: str(folder)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout


def recorded_server(folder: Path, home: Path) -> None:
    """Have a server that records its reads answer a client with a token, by both of its APIs."""
    home.mkdir()
    token = token_of(home, "client")
    server = RecordedServer(home, "--set", "serve.shutdown_grace_s=1", host="0.0.0.0")
    try:
        body = build_request(HONEST, "softmax", QUICK).model_dump(mode="json")
        headers = {"authorization": f"Bearer {token}"}
        assert (
            asked(f"{server.url}/v1/tasks", {"request": body, "name": "one"}, **headers)[0] == 202
        )
        assert asked(f"{server.url}/status/one", **headers)[0] == 200
    finally:
        assert server.stop() == 0
    assert list(folder.glob("reads-*.json"))


def recorded_search(folder: Path, place: Path) -> None:
    """Have `tilewright optimize` ask a scripted model once, within its budgets."""
    place.mkdir()
    (place / "policy.py").write_text(f"def answer(messages, ask):\n    return {FENCED!r}\n")
    command = [sys.executable, "-m", "tests.conventions.setting_reads", "optimize", "softmax"]
    budgets = (
        "max_tokens=1000000",
        "max_turns=1",
        "max_device_s=600",
        "max_wall_s=600",
    )
    words = ["eval.timing.enabled=false", "loop.turns=1", *(f"loop.{item}" for item in budgets)]
    answer = subprocess.run(
        [*command, "--model", f"scripted:{place / 'policy.py'}", "--out", str(place / "runs")]
        + [part for word in words for part in ("--set", word)],
        cwd=ROOT,
        env={**os.environ, FOLDER: str(folder), "TILEWRIGHT_HOME": str(place / "home")},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr


@pytest.fixture(scope="module")
def reads(tmp_path_factory) -> set[tuple[str, str]]:
    folder = tmp_path_factory.mktemp("reads")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        recorded_server(folder, tmp_path_factory.mktemp("server") / "home")
    recorded_search(folder, tmp_path_factory.mktemp("search") / "place")
    recorded_tests(folder)
    return {
        (owner, field)
        for file in folder.glob("reads-*.json")
        for owner, field in json.loads(file.read_text(encoding="utf-8"))
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_code_of_the_package_reads_every_setting(reads):
    wanted = {(qualified(leaf.owner), leaf.field) for tree in TREES for leaf in leaves(tree)}
    assert not sorted(wanted - reads)


RECORDED = """
from tests.conventions.setting_reads import READS, SOURCE, record
from tilewright.config import Config
record()
settings = Config()
exec(compile("settings.serve.log", SOURCE + "serve/service.py", "exec"))
exec(compile("settings.model.seed", SOURCE + "config/loader.py", "exec"))
settings.loop.turns
print(sorted((owner.rpartition(".")[2], field) for owner, field in READS))
"""


def test_a_read_counts_for_its_class_alone_and_only_where_the_package_makes_it(tmp_path):
    answer = subprocess.run(
        [sys.executable, "-c", RECORDED],
        cwd=ROOT,
        env={**os.environ, FOLDER: str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert answer.stdout.strip() == "[('Config', 'serve'), ('ServeSection', 'log')]", answer.stderr
