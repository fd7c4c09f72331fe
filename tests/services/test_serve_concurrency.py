"""Many requests at once: async callers, a full queue, large batches."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import tilewright
from tests.services.test_serve import GOOD, Server, asked, request, token_of
from tests.services.test_serve_follow import ENDLESS
from tilewright.client import Client
from tilewright.config import load
from tilewright.errors import ConfigError, InfrastructureError, TooLarge

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
# More than the 32 threads that asyncio has at most.
MANY = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("many") / "home")
    yield made
    made.stop()


async def all_known(client, wanted):
    limit = time.monotonic() + 30
    while True:
        found = await client.queue_async()
        if found["waiting"] + found["running"] >= wanted:
            return
        assert time.monotonic() < limit, found
        await asyncio.sleep(0.1)


def test_concurrent_async_calls_reach_the_server_together(server):
    client = Client(server.url)

    async def all_of_them() -> list[object]:
        texts = [ENDLESS.format(number) for number in range(MANY)]
        waiting = [asyncio.create_task(client.evaluate_async(request(text))) for text in texts]
        await all_known(client, MANY)
        # Known work: no task of its own, only its key.
        keys = await client.submit_many_async([request(text) for text in texts])
        reports = [asyncio.create_task(client.report_async(key)) for key in keys]
        # Concurrent calls arrive in any order, so any of them may run by now.
        tasks = await asyncio.gather(*(client.task_async(key) for key in keys))
        assert "queued" in {task["state"] for task in tasks} <= {"queued", "running"}
        await asyncio.gather(*(client.cancel_async(key) for key in keys))
        return await asyncio.gather(*waiting, *reports, return_exceptions=True)

    found = asyncio.run(all_of_them())
    assert len(found) == 2 * MANY
    assert all(isinstance(item, InfrastructureError) for item in found)
    assert all("cancelled" in str(item) for item in found)


def test_concurrent_evaluate_async_calls_are_cancelled_as_infrastructure_errors(server):
    client, problem = Client(server.url), request(GOOD.format(1)).problem
    settings = load(overrides=[f"executor={server.url}", "eval.timing.enabled=false"], environ={})

    async def all_of_them() -> list[object]:
        texts = [ENDLESS.format(f"package {number}") for number in range(MANY)]
        waiting = [
            asyncio.create_task(tilewright.evaluate_async(text, problem, config=settings))
            for text in texts
        ]
        await all_known(client, MANY)
        for row in asked(f"{server.url}/v1/tasks?limit=500")[1]:
            client.cancel(row["key"])
        return await asyncio.gather(*waiting, return_exceptions=True)

    found = asyncio.run(all_of_them())
    assert len(found) == MANY
    assert all(isinstance(item, InfrastructureError) for item in found)
    assert all("cancelled" in str(item) for item in found)


def test_sequential_async_calls_behave_as_synchronous_ones(server):
    client = Client(server.url)

    async def one() -> str:
        key = await client.submit_async(request(GOOD.format("async")), name="async", priority="low")
        assert (await client.task_async("async", 60.0))["priority"] == "low"
        with pytest.raises(ConfigError, match="404"):
            await client.report_async("nobody's")
        return (await client.report_async(key)).verdict

    assert asyncio.run(one()) == "correct"


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    home = tmp_path_factory.mktemp("narrow") / "home"
    home.mkdir()
    token = token_of(home, "one")
    words = ["--workers", "1", "--set", "serve.max_queue_per_client=2"]
    made = Server(home, *words, host="0.0.0.0")
    yield f"http://x:{token}@127.0.0.1:{made.port}"
    made.stop()


@pytest.mark.slow
def test_a_client_waits_longer_for_a_full_queue_than_for_an_absent_server(narrow):
    client, found = Client(narrow, patience_s=1.0), []
    keys = []
    for number in range(4):
        keys.append(client.submit(request(ENDLESS.format(number))))
        limit = time.monotonic() + 30
        # Two are under way and two wait, which is all that may.
        while number < 2 and client.task(keys[-1])["state"] != "running":
            assert time.monotonic() < limit
            time.sleep(0.05)

    def ask() -> None:
        found.append(client.evaluate(request(GOOD.format("late"))).verdict)

    asking = threading.Thread(target=ask)
    asking.start()
    asking.join(4)
    assert asking.is_alive()
    stopped, errors = Client(narrow, patience_s=1.0), []

    def give_up() -> None:
        try:
            stopped.submit(request(GOOD.format("never")))
        except InfrastructureError as error:
            errors.append(str(error))

    giving_up = threading.Thread(target=give_up)
    giving_up.start()
    giving_up.join(2)
    assert giving_up.is_alive()
    stopped.kill()
    giving_up.join(5)
    assert "waiting was cancelled" in errors[0]
    for key in keys:
        client.cancel(key)
    asking.join(60)
    assert found == ["correct"]


@pytest.mark.slow
def test_large_batches_are_split_to_the_servers_limit(narrow):
    client = Client(narrow)
    keys = client.submit_many([request(GOOD.format(number)) for number in range(5)])
    assert len(set(keys)) == 5
    assert [client.task(key, 60.0)["verdict"] for key in keys] == ["correct"] * 5
    large = request(GOOD.format("x" * (5 << 20)))
    with pytest.raises(TooLarge, match="413"):
        client.submit_many([large])
