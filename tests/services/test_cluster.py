"""A real Ray cluster: nodes get work, join, and are killed."""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from benchmarks.serve.ray_nodes import Nodes
from tilewright.config import load
from tilewright.errors import ConfigError, ProblemError
from tilewright.executors import ray_executor as clusters
from tilewright.executors.factory import open_executor
from tilewright.executors.ray_executor import RayExecutor
from tilewright.problems.requests import build_request
from tilewright.records import EvalRequest

# Not imported here: Ray reads the variables of a cluster's token when it is.
NO_RAY = importlib.util.find_spec("ray") is None
pytestmark = [pytest.mark.timeout(180), pytest.mark.skipif(NO_RAY, reason="needs ray")]
QUICK = load(overrides=["eval.timing.enabled=false"], environ={})
GOOD = "import torch\n\n\ndef add_relu(x, y):\n    return torch.relu(x + y)  # {}\n"
BAD = "def add_relu(x, y):\n    return x + y + {}\n"
SLOW = (
    "import time\nimport torch\n\n\ndef add_relu(x, y):\n    time.sleep(0.15)\n"
    "    return torch.relu(x + y)  # {}\n"
)
SPY = """
import os
import socket
import torch


def seen():
    found = [name for name in os.environ if name.startswith("RAY")]
    found += [path for path in ("/tmp/ray", "{place}") if os.path.exists(path)]
    for address in (("{host}", {port}), ("127.0.0.1", {port})):
        try:
            socket.create_connection(address, 2).close()
            found.append(str(address))
        except OSError:
            pass
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with open(f"/proc/{{entry}}/cmdline", "rb") as file:
                found += [entry] if b"raylet" in file.read() else []
    return found


def add_relu(x, y):
    found = seen()
    if found:
        raise RuntimeError(str(found))
    return torch.relu(x + y)
"""


def request(text: str) -> EvalRequest:
    return build_request(text, "add_relu", QUICK)


def until(done, limit_s=60.0):
    limit = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with Nodes(tmp_path_factory.mktemp("cluster") / "home", count=1) as made:
        os.environ.update(made.variables)
        yield made
        for name in made.variables:
            del os.environ[name]


def test_a_node_of_another_version_is_refused_by_name(nodes, monkeypatch):
    monkeypatch.setattr(clusters, "__version__", "0.0.0")
    monkeypatch.setattr(clusters, "REFUSED_WAIT_S", 0.1)
    with RayExecutor(nodes.address) as made:
        with pytest.raises(ConfigError, match=r"0\.0\.0 is here"):
            made.device_model()
        with pytest.raises(ConfigError, match=socket.gethostname()):
            made.evaluate(request(GOOD.format(0)))


@pytest.fixture(scope="module")
def cluster(nodes):
    settings = load(overrides=[f"executor=ray:{nodes.address}"], environ={})
    with open_executor(settings) as made:
        yield made


def test_a_node_judges_work_and_sends_its_events_back(cluster):
    seen = []
    report = cluster.evaluate(request(GOOD.format(0)), lambda *event: seen.append(event))
    assert report.verdict == "correct"
    # Other nodes have a device of this name too.
    devices = {fields["device"] for event, fields in seen if event == "stage"}
    assert [name.partition(" (")[0] for name in devices] == [f"cpu of {socket.gethostname()}"]
    assert cluster.evaluate(request(BAD.format(1)), lambda *_: None).verdict == "incorrect"
    (member,) = cluster.members()
    assert (member["device"], member["load"]) == ("cpu", 0)


def test_an_unusable_problem_raises_the_same_error_as_locally(cluster):
    made = request(GOOD.format(2))
    source = made.problem.source.model_copy(update={"text": "raise RuntimeError('no')\n"})
    broken = made.problem.model_copy(update={"source": source})
    with pytest.raises(ProblemError):
        cluster.evaluate(made.model_copy(update={"problem": broken}), lambda *_: None)


def test_a_candidate_sees_nothing_of_the_cluster(nodes, cluster):
    host, _, port = nodes.address.partition(":")
    spy = SPY.format(host=host, port=port, place=nodes.place)
    unconfined: dict[str, Any] = {}
    exec(spy, unconfined)
    assert len(unconfined["seen"]()) > 3, "it looks in the wrong places"
    report = cluster.evaluate(request(spy), lambda *_: None)
    assert report.verdict == "correct", report.outcome


def test_an_interrupted_caller_ends_the_evaluation_on_the_node(cluster):
    def enough(_, __):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        cluster.evaluate(request(SLOW.format(3)), enough)
    assert cluster.evaluate(request(GOOD.format(4)), lambda *_: None).verdict == "correct"


def test_the_idle_callback_runs_while_an_evaluation_is_silent(cluster):
    begun = time.monotonic()

    def idle() -> None:
        if time.monotonic() - begun > 3:
            raise InterruptedError

    sleeps = GOOD.format(5).replace("    return", "    __import__('time').sleep(15)\n    return")
    with pytest.raises(InterruptedError):
        cluster.evaluate(request(sleeps), lambda *_: None, idle=idle)
    assert time.monotonic() - begun < 12


def test_a_new_node_gets_work_and_work_of_a_lost_node_is_repeated(nodes, cluster):
    first = cluster.members()[0]["node"]
    nodes.nodes.append(nodes.add())
    until(lambda: len(cluster.members()) == 2)
    said, begun = [], threading.Event()

    def seen(event, fields):
        if event == "sample":
            begun.set()
        if event == "waiting":
            said.append(fields["message"])

    with ThreadPoolExecutor(4) as pool:
        texts = [SLOW.format(n) for n in range(2)] + [BAD.format(9)]
        asked = [pool.submit(cluster.evaluate, request(text), seen) for text in texts]
        until(lambda: all(member["load"] for member in cluster.members()))
        assert begun.wait(60)
        nodes.kill(nodes.nodes[0])
        verdicts = [future.result().verdict for future in asked]
    assert verdicts == ["correct"] * 2 + ["incorrect"]
    assert cluster.lost == 1
    assert [member["node"] for member in cluster.members()] != [first]
    assert any("starts again elsewhere" in line for line in said)
