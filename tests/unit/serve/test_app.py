"""The application over the store of an earlier version."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

import pytest

from tests import sample_reports as reports
from tilewright.config import load

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from tilewright.serve.app import create_app
from tilewright.serve.service import Service

TASKS = Path(__file__).parents[2] / "golden" / "v1" / "tasks.sql"
KEY = "2903749913f7ac412e8180123d7bae7f1ce8e87c84476eec78b2b415ec4b0298"
"""The task in that file: it is done, and its request and report are of schema version 1."""


def old_store(folder, more=""):
    with contextlib.closing(sqlite3.connect(folder / "tasks.db")) as old:
        old.executescript(TASKS.read_text(encoding="utf-8") + more)


def client_of(folder, evaluate):
    settings = load(overrides=[f"serve.log={folder}/log"], environ={})
    service = Service(settings, "AMD EPYC", evaluate, folder, 1)
    return TestClient(create_app(service), base_url="http://localhost")


def test_the_report_of_a_version_1_task_is_returned_as_version_2(tmp_path):
    old_store(tmp_path)
    with client_of(tmp_path, lambda _, __: reports.correct()) as client:
        assert client.get(f"/v1/tasks/{KEY}").json()["verdict"] == "correct"
        answer = client.get(f"/v1/tasks/{KEY}/report")
    assert answer.status_code == 200
    assert (answer.json()["schema_version"], answer.json()["verdict"]) == (2, "correct")


def test_a_queued_version_1_task_is_evaluated(tmp_path):
    old_store(tmp_path, "UPDATE tasks SET state = 'queued', verdict = NULL, result = NULL;")
    seen = []

    def evaluate(request, _on_event):
        seen.append(request)
        return reports.correct().model_copy(update={"request": request})

    with client_of(tmp_path, evaluate) as client:
        limit = time.monotonic() + 30
        while client.get(f"/v1/tasks/{KEY}").json()["state"] != "done":
            assert time.monotonic() < limit
            time.sleep(0.02)
        assert client.get(f"/v1/tasks/{KEY}/report").json()["verdict"] == "correct"
    assert [request.protocol for request in seen] == ["strict"]
