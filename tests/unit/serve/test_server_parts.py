"""Parts of the server: task events, rate limits, metrics, request log, tokens, pruning."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.serve.store.test_store import given_of
from tilewright.errors import ConfigError
from tilewright.serve.auth import Tokens, listed_tokens, make_token, revoke_token
from tilewright.serve.prometheus_metrics import Metrics, family
from tilewright.serve.request_limits import TokenBuckets
from tilewright.serve.request_log import RequestLog
from tilewright.serve.store.store import Store
from tilewright.serve.task_events import (
    MAX_EVENTS_PER_TASK,
    MAX_LISTENERS_PER_CLIENT,
    MAX_TASKS,
    EventFeed,
    TooMany,
)

pytest.importorskip("sqlalchemy")


def test_task_events_are_read_from_any_position_and_by_many():
    feed, woken = EventFeed("e"), []

    async def follow() -> None:
        with feed.listening("a", "k") as news:
            for number in range(3):
                feed.tell("k", "stage", {"n": number})
                await asyncio.wait_for(news.wait(), 10)
                news.clear()
                woken.append(number)
            feed.tell("other", "stage", {})
            await asyncio.sleep(0.01)
            assert not news.is_set()

    asyncio.run(follow())
    assert len(woken) == 3
    events, missed = feed.since("k", 0)
    assert ([item.fields["n"] for item in events], missed) == ([0, 1, 2], False)
    assert [item.number for item in feed.since("k", events[0].number)[0]] == [2, 3]
    assert feed.since("unknown", 0) == ([], False)
    assert feed.listeners == 0


def test_slow_readers_learn_of_missed_events_and_the_feed_stays_bounded():
    feed = EventFeed("e")
    for number in range(MAX_EVENTS_PER_TASK + 10):
        feed.tell("k", "draw", {"n": number})
    events, missed = feed.since("k", 5)
    assert (len(events), missed) == (MAX_EVENTS_PER_TASK, True)
    assert feed.since("k", events[0].number)[1] is False
    for number in range(MAX_TASKS + 5):
        feed.tell(f"k{number}", "draw", {})
    assert feed.since("k", 0) == ([], True)
    last = feed.since(f"k{MAX_TASKS + 4}", 0)[0][0].number
    # The buffer of a running task was discarded, and it has another event.
    feed.tell("k", "draw", {})
    events, missed = feed.since("k", 5)
    assert (len(events), missed) == (1, True)
    assert feed.since("k", last)[1] is False
    assert feed.since("k new", 0) == ([], False)
    assert len(feed.since(f"k{MAX_TASKS + 4}", 0)[0]) == 1


@pytest.mark.parametrize(
    "text", [None, "", "f.3", "e.", "e.x", "e.-1", "e." + "9" * 40, "e.\u0663"]
)
def test_an_event_id_of_another_server_starts_at_the_beginning(text):
    assert EventFeed("e").place_of(text) == 0
    assert EventFeed("e").place_of("e.12") == 12


def test_listeners_are_limited_per_client():
    feed = EventFeed("e")

    async def listen() -> None:
        with contextlib.ExitStack() as others:
            with feed.listening("a", "k"):
                for number in range(MAX_LISTENERS_PER_CLIENT - 1):
                    others.enter_context(feed.listening("a", f"k{number}"))
                with pytest.raises(TooMany), feed.listening("a", "k"):
                    pass
                with feed.listening("b", "k"):
                    assert feed.listeners == MAX_LISTENERS_PER_CLIENT + 1
            with feed.listening("a", "k"):
                assert feed.listeners == MAX_LISTENERS_PER_CLIENT

    asyncio.run(listen())
    assert feed.listeners == 0


@given(
    st.floats(0.5, 100),
    st.integers(1, 20),
    st.lists(st.floats(0, 2), min_size=1, max_size=200),
)
def test_a_token_bucket_allows_its_burst_and_rate_and_no_more(rate, burst, pauses):
    buckets, now, let = TokenBuckets(rate, burst), 0.0, 0
    for number, pause in enumerate(pauses):
        now += pause
        wait_s = buckets.take("a", now)
        let += wait_s == 0
        assert wait_s >= 0
        if wait_s:
            assert buckets.take(f"other {number}", now) == 0
            assert wait_s <= 1 / rate + 1e-9
    assert let <= burst + rate * sum(pauses[1:]) + 1e-6
    assert buckets.take("a", now + 1.01 / rate) == 0


def test_metrics_are_parsed_by_prometheus_client():
    parser = pytest.importorskip("prometheus_client.parser")
    metrics = Metrics(lambda: [family("tasks", "Tasks.", {"done": 3}, "state")])
    metrics.requests.labels("GET", '2"0\\0\n').inc()
    for seconds in (0.001, 0.3, 4000.0):
        metrics.wait_seconds.observe(seconds)
    metrics.judged([("prepare", 1.0), ("timing", 2.0), ("timing", 3.0)], "cuda:0")
    families = {
        family.name: family
        for family in parser.text_string_to_metric_families(metrics.text().decode())
    }
    value = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert value["tilewright_tasks", "done"] == 3
    assert value["tilewright_requests_total", "GET", '2"0\\0\n'] == 1
    assert value["tilewright_wait_seconds_bucket", "+Inf"] == 3
    assert value["tilewright_wait_seconds_bucket", "0.5"] == 2
    assert value["tilewright_stage_seconds_sum", "timing"] == 5
    assert value["tilewright_device_busy_seconds_total", "cuda:0"] == 5
    assert value["tilewright_expired_tasks_total",] == 0
    assert families["tilewright_wait_seconds"].type == "histogram"


def test_a_log_line_stays_one_short_line(tmp_path):
    request_log = RequestLog(tmp_path / "log")
    request_log.write("request", path="a\nb" * 1000, client=None, status=404)
    (tmp_path / "log").rename(tmp_path / "old")
    request_log.write("later")
    request_log.close()
    (row,) = [json.loads(line) for line in (tmp_path / "old").read_text().splitlines()]
    assert (row["event"], row["status"], len(row["path"]) <= 300) == ("request", 404, True)
    assert "client" not in row
    assert json.loads((tmp_path / "log").read_text())["event"] == "later"
    with pytest.raises(ConfigError, match=r"serve\.log"):
        RequestLog(tmp_path / "none" / "log")


def test_a_log_that_cannot_be_opened_after_a_rotation_loses_lines_only(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    request_log = RequestLog(folder / "log")
    request_log.write("one")
    folder.rename(tmp_path / "old")
    request_log.write("lost")
    request_log.write("lost too")
    folder.mkdir()
    request_log.write("later")
    request_log.close()
    assert json.loads((folder / "log").read_text())["event"] == "later"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has this file")
def test_a_full_disk_loses_lines_only():
    request_log = RequestLog(Path("/dev/full"))
    request_log.write("lost")
    request_log.close()


def test_a_token_is_valid_until_it_is_revoked(tmp_path):
    one = make_token(tmp_path, "one", ("submit",))
    tokens = Tokens(tmp_path)
    two = make_token(tmp_path, "two", ("read", "admin"))
    assert listed_tokens(tmp_path) == {"one": ["submit"], "two": ["read", "admin"]}
    assert tokens.client_of({"authorization": f"Bearer {one}"}).name == "one"
    assert tokens.client_of({"authorization": f"Bearer {two}"}).name == "two"
    revoke_token(tmp_path, "one")
    assert tokens.client_of({"authorization": f"Bearer {one}"}) is None
    assert tokens.client_of({"authorization": f"Bearer {two}"}).name == "two"
    with pytest.raises(ConfigError, match="no client 'one'"):
        revoke_token(tmp_path, "one")
    assert one not in (tmp_path / "tokens.json").read_text()
    assert (tmp_path / "tokens.json").stat().st_mode & 0o077 == 0
    (tmp_path / "tokens.json").write_text("{")
    assert tokens.client_of({"authorization": f"Bearer {two}"}) is None


@pytest.mark.parametrize("text", ['{"B": 5}', '{"B": null}', "[]", "[" * 100_000, "{", "\xff"])
def test_a_damaged_token_file_admits_no_client_and_is_named(tmp_path, text):
    one = make_token(tmp_path, "one", ("submit",))
    tokens = Tokens(tmp_path)
    rows = (tmp_path / "tokens.json").read_text()
    (tmp_path / "tokens.json").write_text(rows.replace("{", '{"B": 5,', 1) if "5" in text else text)
    assert tokens.client_of({"authorization": f"Bearer {one}"}) is None
    assert not tokens
    for call in (Tokens, listed_tokens, lambda home: revoke_token(home, "one")):
        with pytest.raises(ConfigError, match=r"tokens\.json"):
            call(tmp_path)
    (tmp_path / "tokens.json").write_text(rows)
    assert tokens.client_of({"authorization": f"Bearer {one}"}).name == "one"


def test_a_token_file_that_can_be_read_again_without_a_change_admits_its_clients(tmp_path):
    one = make_token(tmp_path, "one", ("submit",))
    tokens, path = Tokens(tmp_path), tmp_path / "tokens.json"
    make_token(tmp_path, "two", ("submit",))
    rows, times = path.read_text(), (1_000_000_000, 1_000_000_000)
    # The server compares size and time, and sees no change of the file.
    path.write_text("x" * len(rows))
    os.utime(path, times)
    assert tokens.client_of({"authorization": f"Bearer {one}"}) is None
    path.write_text(rows)
    os.utime(path, times)
    assert tokens.client_of({"authorization": f"Bearer {one}"}).name == "one"


@pytest.mark.parametrize("name", ["", "a b\nc", "a" * 101, "a\n", "local", "nobody"])
def test_an_invalid_client_name_is_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=re.escape(f"client {name!r}")):
        make_token(tmp_path, name, ("submit",))
    assert not (tmp_path / "tokens.json").exists()


def test_a_token_named_as_the_loopback_client_is_invalid(tmp_path):
    token = make_token(tmp_path, "one", ("read",))
    rows = (tmp_path / "tokens.json").read_text()
    (tmp_path / "tokens.json").write_text(rows.replace('"one"', '"local"'))
    assert Tokens(tmp_path).client_of({"authorization": f"Bearer {token}"}) is None
    revoke_token(tmp_path, "local")
    assert listed_tokens(tmp_path) == {}


def test_old_and_excess_finished_tasks_are_pruned_but_never_waiting_ones(tmp_path):
    store = Store(tmp_path / "tasks.db")
    for number in range(10):
        store.submit(given_of(f"k{number}", name=f"n{number}")).result()
        if number < 7:
            store.begin(f"k{number}").result()
            store.finish(f"k{number}", "correct", b"report").result()
    store.begin("k7").result()
    assert store.prune(0.0, 5).result() == 2
    assert store.counts() == {"done": 5, "running": 1, "queued": 2}
    assert (store.task("k1"), store.named("a", "n1"), store.owns("a", "k1")) == (None, None, False)
    assert store.prune(0.0, 5).result() == 0
    assert store.prune(time.time() + 1, None, 3).result() == 3
    assert store.prune(time.time() + 1, None, 3).result() == 2
    assert store.counts() == {"running": 1, "queued": 2}
    store.close()


def test_tokens_that_are_made_concurrently_are_all_kept(tmp_path):
    with ThreadPoolExecutor(12) as pool:
        made = list(pool.map(lambda n: make_token(tmp_path, f"k{n}", ("submit",)), range(24)))
    assert len(set(made)) == 24
    assert len(listed_tokens(tmp_path)) == 24
    tokens = Tokens(tmp_path)
    client = tokens.client_of({"authorization": f"Bearer {made[3]}"})
    assert client is not None
    assert tokens.knows(client)
    revoke_token(tmp_path, client.name)
    assert not tokens.knows(client)
