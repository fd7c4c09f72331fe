"""Following, draining and rate limits: a server process and its Python client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest

from tests.services.test_serve import BAD, GOOD, Server, asked, request, submit, token_of
from tilewright.client import Client
from tilewright.errors import ConfigError, InfrastructureError

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
ENDLESS = "def softmax(x):\n    while True:\n        pass  # {}\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    home = tmp_path_factory.mktemp("follow") / "home"
    made = Server(
        home, "--set", f"serve.log={home}/log.jsonl", "--set", "eval.limits.call_timeout_s=30"
    )
    made.log = home / "log.jsonl"
    yield made
    made.stop()


def log_of(server):
    return [json.loads(line) for line in server.log.read_text().splitlines()]


def test_many_clients_follow_a_task_from_start_to_end(server):
    client, found = Client(server.url), []
    key = client.submit(request(GOOD.format("followed")), name="followed")

    def follow() -> None:
        found.append(list(client.events("followed")))

    threads = [threading.Thread(target=follow) for _ in range(8)]
    for thread in threads:
        thread.start()
    # A client that never reads delays no other.
    idle = socket.create_connection(("127.0.0.1", server.port))
    idle.sendall(f"GET /v1/tasks/{key}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    for thread in threads:
        thread.join(60)
    idle.close()
    assert len(found) == 8
    for events in found:
        kinds = [event.kind for event in events]
        assert (kinds[0], kinds[-1], kinds.count("running")) == ("state", "ended", 1)
        stages = [event.fields["stage"] for event in events if event.kind == "stage"]
        assert [s for s in stages if s not in ("build", "check_problem")][:3] == [
            "device_wait",
            "start_judge",
            "load",
        ]
        assert events[-1].fields["verdict"] == "correct"
    story = found[0]
    again = list(client.events(key))
    assert [event.kind for event in again] == [event.kind for event in story]
    rest = list(client.events(key, after=story[3].place))
    assert [e.place for e in rest[1:]] == [e.place for e in story[4:]]
    assert client.report(key).verdict == "correct"


def test_the_async_client_follows_without_blocking_the_event_loop(server):
    client = Client(server.url)

    async def follow() -> tuple[list[str], int]:
        key, kinds, turns = client.submit(request(GOOD.format("async"))), [], 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.01)

        turning = asyncio.create_task(turn())
        async for event in client.events_async(key):
            kinds.append(event.kind)
        turning.cancel()
        with pytest.raises(ConfigError, match="404"):
            async for _ in client.events_async("nobody's"):
                pass
        return kinds, turns

    kinds, turns = asyncio.run(follow())
    assert (kinds[0], kinds[-1]) == ("state", "ended")
    assert turns > 3


def test_several_tasks_are_submitted_awaited_and_one_is_cancelled(server):
    client = Client(server.url)
    texts = [BAD.format(0), ENDLESS.format("many"), GOOD.format("many")]
    keys = client.submit_many([request(text) for text in texts])
    # Looked at first: it would reach its limit while another is waited for on a busy machine.
    limit = time.monotonic() + 30
    while client.task(keys[1])["state"] != "running":
        assert time.monotonic() < limit
        time.sleep(0.05)
    following = client.events(keys[1])
    assert next(following).kind == "state"
    client.cancel(keys[1])
    assert list(following)[-1].fields["state"] == "cancelled"
    assert client.task(keys[0], 60.0)["verdict"] == "incorrect"
    assert client.task(keys[2], 60.0)["verdict"] == "correct"
    with pytest.raises(InfrastructureError, match="cancelled"):
        client.report(keys[1])
    with pytest.raises(ConfigError, match="404"):
        list(client.events("nothing"))


def test_a_running_task_is_ended_at_once_when_its_last_client_cancels(server):
    client = Client(server.url)
    key = client.submit(request(ENDLESS.format("ended")))
    with contextlib.closing(client.events(key)) as events:
        assert any(event.kind == "sample" for event in events)
    start = time.monotonic()
    client.cancel(key)
    while client.queue()["running"]:
        # Its own limit would be 30 s.
        assert time.monotonic() - start < 15
        time.sleep(0.05)
    assert client.report(client.submit(request(GOOD.format("next")))).verdict == "correct"


def test_metrics_and_request_log_record_the_work(server):
    parser = pytest.importorskip("prometheus_client.parser")
    client = Client(server.url)
    key = client.submit(request(GOOD.format("figures")))
    client.report(key)
    assert client.submit(request(GOOD.format("figures"))) == key
    made = urllib.request.Request(f"{server.url}/metrics", headers={"x-request-id": "mine-1"})
    with urllib.request.urlopen(made, timeout=10) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert answer.headers["x-request-id"] == "mine-1"
        text = answer.read().decode()
    value = {
        (sample.name, *sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert value["tilewright_cache_hits_total", "done"] >= 1
    assert value["tilewright_ended_total", "correct"] >= 1
    assert value["tilewright_stage_seconds_sum", "correctness"] > 0
    assert value["tilewright_device_busy_seconds_total", "cpu"] > 0
    assert value["tilewright_wait_seconds_count",] >= 1
    assert value["tilewright_tasks", "done"] >= 1
    assert value["tilewright_waiting",] == 0
    rows = [row for row in log_of(server) if row.get("task") == key]
    assert {"running", "judged", "request"} <= {row["event"] for row in rows}
    # A request is logged once its answer is out, which may be after we have read it.
    limit = time.monotonic() + 10
    while "mine-1" not in {row.get("id") for row in log_of(server)}:
        assert time.monotonic() < limit
        time.sleep(0.02)
    workers = asked(f"{server.url}/v1/workers")[1]
    assert 2 * len(workers) == client.queue()["max_running"]


def test_requests_of_foreign_origins_are_refused(server):
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example:8477"}):
        assert asked(f"{server.url}/v1/tasks", **headers)[0] == 403
    for headers in ({"origin": "http://localhost:1"}, {"host": f"localhost:{server.port}"}):
        assert asked(f"{server.url}/v1/tasks", **headers)[0] == 200
    made = urllib.request.Request(f"{server.url}/v1/health", headers={"origin": "http://localhost"})
    with urllib.request.urlopen(made, timeout=10) as answer:
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_draining_server_refuses_finishes_and_leaves_the_rest_to_the_next(tmp_path):
    home = tmp_path / "home"
    first = Server(home, "--workers", "1", "--set", "eval.limits.call_timeout_s=4")
    client = Client(first.url)
    running = client.submit(request(ENDLESS.format("drained")))
    with contextlib.closing(client.events(running)) as events:
        assert any(event.kind == "sample" for event in events)
    others = client.submit_many([request(GOOD.format(n)) for n in range(3)])
    first.process.send_signal(signal.SIGTERM)
    limit = time.monotonic() + 10
    while asked(f"{first.url}/v1/health")[1]["status"] != "draining":
        assert time.monotonic() < limit
    made = urllib.request.Request(
        f"{first.url}/v1/tasks",
        json.dumps({"request": request(GOOD.format("late")).model_dump(mode="json")}).encode(),
        {"content-type": "application/json"},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(made, timeout=10)
    assert (refused.value.code, refused.value.headers["retry-after"]) == (503, "5")
    refused.value.close()
    # The next server waits for the folder, then goes on with what waited.
    second = Server(home, "--workers", "1", wait=False)
    assert first.process.wait(60) == 0
    second.wait()
    try:
        later = Client(second.url)
        assert later.task(running, 60.0)["verdict"] == "failed"
        assert later.task(running)["attempts"] == 1
        assert [later.task(key, 60.0)["verdict"] for key in others] == ["correct"] * 3
    finally:
        second.stop()


def test_each_token_has_its_own_rate_limit_and_queue_share(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    one, two = token_of(home, "one"), token_of(home, "two")
    limits = ["serve.requests_per_s=0.5", "serve.burst=12", "serve.max_queue_per_client=2"]
    words = [word for limit in limits for word in ("--set", limit)]
    server = Server(home, *words, host="0.0.0.0")
    try:
        address = f"{server.url}/v1/tasks"
        body = [{"request": request(ENDLESS.format(n)).model_dump(mode="json")} for n in range(3)]
        codes = [asked(f"{address}/batch", body, authorization=f"Bearer {one}")[0]]
        codes += [asked(address, authorization=f"Bearer {one}")[0] for _ in range(12)]
        assert (codes[0], codes[1], codes[-1]) == (413, 200, 429)
        assert asked(address, authorization=f"Bearer {two}")[0] == 200
        wrong = [asked(address, authorization=f"Bearer {n}")[0] for n in range(14)]
        assert (wrong[0], wrong[-1]) == (401, 429)
        assert asked(address, authorization=f"Bearer {two}")[0] == 200
    finally:
        server.stop()


def test_a_closed_event_stream_leaves_no_connection_behind(server):
    client, count = Client(server.url), 70
    key = client.submit(request(ENDLESS.format("left")))

    async def look() -> None:
        story = client.events_async(key)
        assert (await anext(story)).kind == "state"
        await story.aclose()

    async def all_of_them() -> None:
        for _ in range(count):
            await asyncio.wait_for(look(), 20)

    # More than one client may listen to at once.
    asyncio.run(all_of_them())
    client.cancel(key)


def test_an_event_stream_ends_when_its_token_is_revoked(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    token = token_of(home, "one")
    server = Server(home, "--set", "eval.limits.call_timeout_s=30", host="0.0.0.0")
    try:
        client = Client(server.url, token=token)
        key = client.submit(request(ENDLESS.format("revoked")))
        story = client.events(key)
        assert next(story).kind == "state"
        command = [sys.executable, "-m", "tilewright", "serve", "token", "revoke", "one"]
        environment = {**os.environ, "TILEWRIGHT_HOME": str(home)}
        subprocess.run(command, env=environment, check=True)
        start = time.monotonic()
        with pytest.raises(ConfigError, match="token"):
            list(story)
        assert time.monotonic() - start < 15
    finally:
        # It would wait for the task, which never ends.
        server.kill()


def test_old_and_excess_finished_tasks_are_pruned(tmp_path):
    home = tmp_path / "home"
    server = Server(home)
    try:
        for number in range(3):
            submit(server, f"def softmax(x{number}:\n", name=f"n{number}")
        for number in range(3):
            assert asked(f"{server.url}/v1/tasks/n{number}?wait_s=60")[1]["state"] == "done"
    finally:
        server.stop()
    server = Server(home, "--set", "serve.max_finished_tasks=1")
    try:
        limit = time.monotonic() + 20
        while len(found := asked(f"{server.url}/v1/tasks")[1]) > 1:
            assert time.monotonic() < limit
            time.sleep(0.1)
        assert len(found) == 1
    finally:
        server.stop()
