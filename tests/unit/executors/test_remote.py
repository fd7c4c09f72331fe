"""A client of a server that forgets work, is another program, or is silent."""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests import sample_reports as reports
from tilewright.client import Client
from tilewright.errors import (
    CompilationTimeout,
    ConfigError,
    InfrastructureError,
    ProblemError,
    RecordError,
    TilewrightError,
)
from tilewright.executors.remote import (
    MAX_SUBMISSIONS,
    PROXY_VARIABLES,
    RemoteExecutor,
    _tls_context,
)

REPORT = reports.correct().to_json()
EVENT_STREAM = ("content-type", "text/event-stream; charset=utf-8")
DONE = json.dumps({"key": "k", "state": "done"})


@pytest.fixture
def serving():
    """Return a function that serves what another one says to method, path and number of request."""
    servers = []

    def start(answer):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def _said(self):
                asked.append(f"{self.command} {self.path}")
                self.rfile.read(int(self.headers.get("content-length") or 0))
                status, body, *headers = answer(self.command, self.path, len(asked))
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.end_headers()
                for part in [body] if isinstance(body, str) else body:
                    self.wfile.write(part.encode())
                    self.wfile.flush()

            do_GET = do_POST = _said

            def log_message(self, *_):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_task_that_the_server_forgot_is_submitted_again(serving):
    def answer(method, _path, number):
        if method == "POST":
            return 202, DONE
        return (404, "{}") if number < 5 else (200, REPORT)

    url, asked = serving(answer)
    with RemoteExecutor(url) as remote:
        assert remote.evaluate(reports.request()).verdict == "correct"
    assert [line.split()[0] for line in asked] == ["POST", "GET"] * 3


def test_a_task_that_is_forgotten_repeatedly_is_an_infrastructure_error(serving):
    url, asked = serving(lambda method, *_: (202, DONE) if method == "POST" else (404, "{}"))
    with pytest.raises(InfrastructureError, match="forgot the task"):
        RemoteExecutor(url).evaluate(reports.request())
    assert len(asked) == 2 * MAX_SUBMISSIONS


def test_the_stages_of_a_task_are_told_while_it_runs(serving):
    told, heard = [], threading.Event()

    def progress(event, fields):
        told.append((event, fields))
        if event == "timing":
            heard.set()

    def answer(method, path, _number):
        if method == "POST":
            return 202, json.dumps({"key": "k", "state": "queued"})
        if path.endswith("/events"):
            events = [("stage", {"stage": "build"}), ("other", {}), ("timing", {"case": "large"})]
            return 200, [f"event: {k}\ndata: {json.dumps(v)}\n\n" for k, v in events], EVENT_STREAM
        if path.endswith("/report"):
            return 200, REPORT
        heard.wait(10.0)
        return 200, DONE

    url, asked = serving(answer)
    with RemoteExecutor(url) as remote:
        assert remote.evaluate(reports.request(), progress).verdict == "correct"
        # Without a progress function the client requests no events.
        before = len(asked)
        assert remote.evaluate(reports.request()).verdict == "correct"
    assert told[1:] == [("stage", {"stage": "build"}), ("timing", {"case": "large"})]
    assert not any("events" in line for line in asked[before:])


@pytest.mark.parametrize("body", ["{}", "[]", "3"])
def test_a_foreign_server_is_a_config_error(serving, body):
    url, _ = serving(lambda *_: (200, body))
    with pytest.raises(ConfigError, match="not a tilewright serve"):
        RemoteExecutor(url).evaluate(reports.request())


def test_a_report_of_a_newer_version_is_named(serving):
    newer = json.dumps({**json.loads(REPORT), "schema_version": 99})
    url, _ = serving(lambda method, *_: (202, DONE) if method == "POST" else (200, newer))
    with pytest.raises(RecordError, match="schema version 99"):
        RemoteExecutor(url).evaluate(reports.request())


@pytest.mark.parametrize(
    ("told", "kind", "says"),
    [
        ({"error": "CompilationTimeout: 60 s", "error_kind": "CompilationTimeout"},
         CompilationTimeout, "60 s"),
        ({"error": "RecordError: torn", "error_kind": "RecordError"}, RecordError, "torn"),
        ({"error": "ProblemError: gone", "error_kind": None}, ProblemError, "ProblemError: gone"),
        ({"error": "ProblemError: gone"}, ProblemError, "ProblemError: gone"),
        ({"error": "KeyError: 3", "error_kind": None}, InfrastructureError, "KeyError: 3"),
    ],
)  # fmt: skip
def test_the_error_of_a_task_is_raised_as_its_kind(serving, told, kind, says):
    url, _ = serving(lambda *_: (202, json.dumps({"key": "k", "state": "failed", **told})))
    with pytest.raises(TilewrightError) as error:
        RemoteExecutor(url).evaluate(reports.request())
    assert type(error.value) is kind
    assert str(error.value).endswith(says)


def test_a_retry_after_date_is_ignored(serving):
    date = ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")

    def answer(method, _path, number):
        if number == 1:
            return 503, "{}", date
        return (202, DONE) if method == "POST" else (200, REPORT)

    url, _ = serving(answer)
    assert RemoteExecutor(url).evaluate(reports.request()).verdict == "correct"


def test_a_silent_task_with_a_live_connection_is_followed_further(serving):
    def still():
        for _ in range(12):
            yield ": still here\n\n"
            time.sleep(0.1)

    ended = "event: ended\ndata: {}\nid: 1\n\n"

    def answer(_method, _path, number):
        if number == 2:
            return 503, "{}"
        return 200, still() if number == 1 else ended, EVENT_STREAM

    url, asked = serving(answer)
    (event,) = Client(url, patience_s=1.0).events("k")
    assert (event.kind, len(asked)) == ("ended", 3)


def test_a_page_of_a_gateway_is_no_stream_of_events(serving):
    ended = "event: ended\ndata: {}\nid: 1\n\n"

    def answer(_method, _path, number):
        if number < 4:
            return 200, "<html>Log in</html>", ("content-type", "text/html")
        return 200, ended, EVENT_STREAM

    url, _ = serving(answer)
    with pytest.raises(InfrastructureError, match=r"not reached within 0\.2 s"):
        list(Client(url, patience_s=0.2).events("k"))


@pytest.mark.parametrize("body", ['{"detail": {"reason": "closed"}}', '{"detail": null}'])
def test_a_refusal_in_the_format_of_a_proxy_is_repeated(serving, body):
    url, _ = serving(lambda *_: (422, body))
    with pytest.raises(ConfigError) as error:
        RemoteExecutor(url).evaluate(reports.request())
    assert f"refused (422: {body})" in str(error.value)


@pytest.mark.parametrize("value", ["socks9://127.0.0.1:9", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_named_by_its_variable(monkeypatch, value):
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(ConfigError, match=r"^ALL_PROXY: cannot be used here: "):
        RemoteExecutor("http://127.0.0.1:9", patience_s=0.0).device_model()
    with pytest.raises(ConfigError, match=r"^ALL_PROXY: cannot be used here: "):
        list(Client("http://127.0.0.1:9", patience_s=0.0).events("k"))


def test_a_socks_proxy_without_its_package_is_named_by_its_variable(monkeypatch):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"ALL_PROXY.*: cannot be used here: .*socksio"):
        RemoteExecutor("http://127.0.0.1:9", patience_s=0.0).device_model()


def test_a_missing_file_of_certificates_is_named_by_its_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    _tls_context.cache_clear()
    with pytest.raises(ConfigError, match=r"^SSL_CERT_FILE .*none\.pem: cannot be read: no such"):
        RemoteExecutor("http://127.0.0.1:9", patience_s=0.0).device_model()
