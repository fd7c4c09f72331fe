"""Fetching a problem set from a local server that answers as the Hub does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.unit.problems.test_imported_sets import row

COMMIT = "708b9f6" + "0" * 33
NAME = "ScalingIntelligence/KernelBench"
REFS = {
    "branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": COMMIT}],
    "tags": [],
    "converts": [],
}


def a_hub(files: dict[str, bytes]) -> type[BaseHTTPRequestHandler]:
    """Return a handler that has one dataset, with one commit."""
    about = {"id": NAME, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            api, resolve = f"/api/datasets/{NAME}/", f"/datasets/{NAME}/resolve/{COMMIT}/"
            if path in (f"{api}revision/main", f"{api}revision/{COMMIT}"):
                self.answer(json.dumps(about).encode())
            elif path == f"{api}refs":
                self.answer(json.dumps(REFS).encode())
            elif path == f"{api}tree/{COMMIT}":
                tree = [
                    {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                    for name, data in files.items()
                ]
                self.answer(json.dumps(tree).encode())
            elif path.removeprefix(resolve) in files:
                data = files[path.removeprefix(resolve)]
                self.answer(data, ETag=hashlib.sha256(data).hexdigest())
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RevisionNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def answer(self, data: bytes, **headers: str) -> None:
            self.send_response(200)
            wanted = {"X-Repo-Commit": COMMIT, "Content-Length": str(len(data)), **headers}
            for name, value in wanted.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    from pyarrow import Table, parquet

    files = {"README.md": b"# KernelBench\n"}
    for level in (1, 2, 3, 4):
        path = tmp_path / "rows.parquet"
        parquet.write_table(Table.from_pylist([row(level, 1), row(level, 2)]), path)
        files[f"data/level_{level}-00000-of-00001.parquet"] = path.read_bytes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), a_hub(files))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_all_levels_are_fetched_and_a_missing_revision_is_named(endpoint, tmp_path):
    # A process of its own: the package reads its environment when it is imported.
    environment = {
        **os.environ,
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(tmp_path / "hf"),
        "TILEWRIGHT_HOME": str(tmp_path / "home"),
    }

    def tilewright(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tilewright", "problems", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    made = tilewright("import", "kernelbench")
    assert made.returncode == 0, made.stderr
    assert f"8 problems of kernelbench@main-{COMMIT[:12]} are in" in made.stderr
    listed = tilewright("list", "kernelbench/level4", "--json")
    assert [item["address"] for item in json.loads(listed.stdout)] == [
        "kernelbench/level4-1",
        "kernelbench/level4-2",
    ]
    wrong = tilewright("import", "kernelbench", "--revision", "v0.1")
    assert wrong.returncode == 3
    assert f"--revision v0.1: {NAME} has main, and whole commits" in wrong.stderr
