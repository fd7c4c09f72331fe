"""The KernelGYM API and its clients: names, scopes, batches, invalid tasks, shutdown."""

from __future__ import annotations

import signal
import time
from urllib.parse import quote

import pytest

from tests.services.test_kernelgym import KERNEL, task
from tests.services.test_serve import GOOD, Server, asked, request, token_of

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
ENDLESS = "\n        while True: pass  # {}"
CANNOT = {"kernel_code": "class Something:\n    pass\n"}


class Clients:
    """A server that wants tokens, and several clients of it."""

    def __init__(self, home):
        home.mkdir()
        scopes = {"trainer": (), "submitter": ("submit",), "reader": ("read",), "other": ()}
        self._tokens = {name: token_of(home, name, *scopes[name]) for name in scopes}
        words = [
            "serve.max_queue_per_client=5",
            "eval.timing.enabled=false",
            "eval.limits.call_timeout_s=20",
        ]
        given = [word for item in words for word in ("--set", item)]
        self.server = Server(home, "--workers", "1", *given, host="0.0.0.0")

    def ask(self, client, path, body=None, method=None):
        token = f"Bearer {self._tokens[client]}"
        return asked(f"{self.server.url}{path}", body, method, authorization=token)


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    made = Clients(tmp_path_factory.mktemp("clients") / "home")
    yield made
    made.server.stop()


@pytest.mark.parametrize("client", ["trainer", "submitter"])
def test_only_the_submitter_reads_a_result(clients, client):
    name = f"own/{client}"
    assert clients.ask(client, "/evaluate", task(name))[1]["correctness"] is True
    assert clients.ask(client, f"/status/{name}")[1]["status"] == "completed"
    assert clients.ask(client, f"/results/{name}")[1]["correctness"] is True
    for other in ("other", "reader"):
        assert clients.ask(other, f"/status/{name}")[0] == 404
        assert clients.ask(other, f"/results/{name}")[0] == 404
    assert clients.ask("reader", "/evaluate", task("no"))[0] == 403


def test_server_wide_information_requires_the_read_scope(clients):
    for path in ("/workers/status", "/v1/workers", "/v1/queue", "/metrics"):
        assert clients.ask("submitter", path)[0] == 403
    assert clients.ask("trainer", "/workers/status")[1]["total"] == 1


def test_the_submitter_reads_and_cancels_a_task_by_the_v1_api(clients):
    body = request("def softmax(x):\n    while True:\n        pass\n").model_dump(mode="json")
    status, found = clients.ask("submitter", "/v1/tasks", {"request": body, "name": "mine"})
    assert status == 202
    path = f"/v1/tasks/{found['key']}"
    assert clients.ask("submitter", path)[1]["state"] in ("queued", "running")
    assert clients.ask("reader", path, method="DELETE")[0] == 403
    assert clients.ask("other", path, method="DELETE")[0] == 404
    assert clients.ask("submitter", "/v1/tasks/mine", method="DELETE")[1]["state"] == "cancelled"
    assert clients.ask("submitter", f"{path}/report")[0] == 404


@pytest.mark.parametrize(
    "name", ["level1/3_x", "a b|c?d#e%f", "/a//b/", "\u00e9\t\u2028", "x" * 100]
)
def test_a_task_is_found_under_any_name(clients, name):
    found = clients.ask("trainer", "/evaluate", task(name))[1]
    assert (found["task_id"], found["correctness"]) == (name, True)
    for path in ("status", "results"):
        status, row = clients.ask("trainer", f"/{path}/{quote(name, safe='/')}")
        assert (status, row["task_id"], row["status"]) == (200, name, "completed")


def test_each_task_of_a_batch_has_its_own_result(clients):
    assert clients.ask("trainer", "/evaluate", task("b1"))[0] == 200
    rows = [task("c1"), task("b1", "return x"), task("n1", **CANNOT), task("c2", "return x")]
    status, found = clients.ask("trainer", "/evaluate/batch", {"batch_id": "first", "tasks": rows})
    assert status == 200
    said = [(row["task_id"], row["status"], row["error_code"]) for row in found["results"]]
    assert said == [
        ("c1", "completed", None),
        ("b1", "failed", "UNJUDGED"),
        ("n1", "failed", "VALIDATION_ERROR"),
        ("c2", "completed", "CORRECTNESS_ERROR"),
    ]
    assert "give it another task_id" in found["results"][1]["error_message"]
    counts = [found[f"{name}_tasks"] for name in ("total", "completed", "failed")]
    assert (found["batch_id"], found["batch_status"], counts) == ("first", "completed", [4, 2, 2])
    assert found["submitted_at"] < found["completed_at"]
    # The other work of that name is what it was.
    assert clients.ask("trainer", "/results/b1")[1]["correctness"] is True


def test_a_batch_larger_than_the_queue_is_refused_without_retry(clients):
    rows = [task(f"large{n}") for n in range(6)]
    status, said = clients.ask("trainer", "/evaluate/batch", {"tasks": rows})
    assert (status, "at most 5 together" in said) == (413, True)
    body = [{"request": request(GOOD.format(n)).model_dump(mode="json")} for n in range(6)]
    assert clients.ask("trainer", "/v1/tasks/batch", body)[0] == 413
    assert clients.ask("trainer", "/evaluate/batch", {"tasks": []})[0] == 422


def test_an_invalid_task_is_answered_again_to_its_client_only(clients):
    found = clients.ask("trainer", "/evaluate", task("cannot", extra=1, **CANNOT))[1]
    assert (found["status"], found["error_code"]) == ("failed", "VALIDATION_ERROR")
    assert found["metadata"]["fields_without_effect"][0] == "extra"
    assert clients.ask("trainer", "/status/cannot")[1]["status"] == "failed"
    assert clients.ask("trainer", "/results/cannot")[1]["error_message"] == found["error_message"]
    assert clients.ask("other", "/results/cannot")[0] == 404
    # The name is free: it stands for no work.
    assert clients.ask("trainer", "/evaluate", task("cannot"))[1]["correctness"] is True
    assert clients.ask("trainer", "/results/cannot")[1]["correctness"] is True


@pytest.mark.parametrize(
    "fields",
    [
        {"enable_profiling": 1},
        {"enable_profiling": 0},
        {"entry_point": None, "backend": None, "timeout": None, "priority": None},
    ],
)
def test_values_that_kernelgym_reads_as_defaults_are_accepted(clients, fields):
    fields = {"kernel_code": KERNEL.format(body="return torch.relu(x + self.bias)"), **fields}
    status, found = clients.ask("trainer", "/evaluate", task(f"{sorted(fields)}", **fields))
    assert (status, found["status"]) == (200, "completed"), found


def test_a_draining_server_is_not_healthy(tmp_path):
    server = Server(tmp_path / "home", "--set", "eval.limits.call_timeout_s=4")
    assert asked(f"{server.url}/health")[1]["status"] == "healthy"
    body = request("def softmax(x):\n    while True:\n        pass\n").model_dump(mode="json")
    key = asked(f"{server.url}/v1/tasks", {"request": body})[1]["key"]
    limit = time.monotonic() + 30
    while asked(f"{server.url}/v1/tasks/{key}")[1]["state"] != "running":
        assert time.monotonic() < limit
    server.process.send_signal(signal.SIGTERM)
    while asked(f"{server.url}/health")[1]["status"] != "draining":
        assert time.monotonic() < limit
    assert server.process.wait(60) == 0
