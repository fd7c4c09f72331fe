"""The service keeps each task that it accepts, and goes on after a failure of its own parts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time

import pytest

from tests import sample_reports as reports
from tests.unit.serve.store.test_store import given_of
from tilewright.config import load
from tilewright.records import SourceFile

pytest.importorskip("sqlalchemy")
pytest.importorskip("fastapi")
from tilewright.serve import service as services
from tilewright.serve.auth import LOCAL
from tilewright.serve.schemas import Submission
from tilewright.serve.service import Service


@pytest.fixture
def service(tmp_path):
    def evaluate(request, _on_event):
        return reports.correct().model_copy(update={"request": request})

    settings = load(
        overrides=[f"serve.log={tmp_path}/log", "serve.max_finished_tasks=1"], environ={}
    )
    made = Service(settings, "AMD EPYC", evaluate, tmp_path, 1)
    yield made
    made.close()


@pytest.fixture
def refused(monkeypatch):
    """Yield the names of threads of asyncio that cannot start: the first one."""
    start, names = threading.Thread.start, []

    def start_later(thread):
        if thread.name.startswith("asyncio_") and not names:
            names.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_later)
    return names


def submission(source):
    request = reports.request()
    file = SourceFile(path="problem.py", text=source)
    problem = request.problem.model_copy(update={"description": "", "source": file})
    return Submission(request=request.model_copy(update={"problem": problem}))


def until(done):
    limit = time.monotonic() + 10
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_a_problem_nested_too_deeply_is_accepted_and_evaluated(service):
    task = asyncio.run(service.submit(LOCAL, submission(f"x={'-' * 9000}1\n")))
    until(lambda: service.store.task(task.key).state == "done")
    assert service.activity.problem(task.key) == (reports.request().problem.id, "")


def test_a_task_whose_title_cannot_be_read_is_evaluated(service, refused):
    with contextlib.suppress(RuntimeError):
        asyncio.run(service.submit(LOCAL, submission("x = 1\n")))
    until(lambda: service.store.counts() == {"done": 1})
    assert len(refused) == 1


def test_pruning_goes_on_although_a_thread_cannot_start_once(
    service, refused, monkeypatch, tmp_path
):
    monkeypatch.setattr(services, "PRUNE_S", 0.01)
    for key in ("one", "two"):
        service.store.submit(given_of(key)).result()
        service.store.begin(key).result()
        service.store.finish(key, "correct", b"report").result()

    async def prune() -> None:
        pruning = asyncio.create_task(service.keep_pruning())
        async with asyncio.timeout(10):
            while service.store.counts() != {"done": 1}:
                await asyncio.sleep(0.005)
        pruning.cancel()

    asyncio.run(prune())
    assert len(refused) == 1
    rows = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    (error,) = [row for row in rows if row["event"] == "internal_error"]
    assert error["message"] == "old tasks are not deleted: RuntimeError: can't start new thread"
