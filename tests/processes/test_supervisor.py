"""The supervisor's `main` in a thread, and its callers: executor, API, loop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import tilewright
from tests.processes.evaluations import LIMITS, RIGHT, TWICE, problem, request
from tilewright import api
from tilewright.config import Config, load
from tilewright.errors import ConfigError, InfrastructureError, ProblemError
from tilewright.evaluator import server
from tilewright.executors.local import LocalExecutor
from tilewright.records import EvalReport
from tilewright.records.codes import FailureReason
from tilewright.wire.frames import Channel, Frame

BROKEN = TWICE.replace("torch.tanh(x) * 2", "x @ x @ x")
ANSWER_S = 60.0


class Client:
    """One end of a supervisor that runs in a thread."""

    def __init__(self, home: Path) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        arguments = ["--channel", str(theirs.detach()), "--home", str(home)]
        self.thread = threading.Thread(target=server.main, args=(arguments,))
        self.thread.start()
        assert self.receive().kind == "up"

    def receive(self) -> Frame:
        """Return the next frame."""
        return self.channel.receive(time.monotonic() + ANSWER_S)

    def ask(self, body: bytes, **fields: Any) -> tuple[list[str], Frame]:
        """Send a request; return the stages that were reported, and the last frame."""
        self.channel.send("evaluate", {"checks": None, **fields}, body)
        stages = []
        while True:
            frame = self.receive()
            if frame.kind != "event":
                return stages, frame
            stages += [frame.fields["stage"]] if frame.fields["event"] == "stage" else []

    def close(self) -> None:
        """Leave, and wait for the supervisor to end."""
        self.channel.close()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Yield a client of a supervisor of its own."""
    made = Client(tmp_path_factory.mktemp("home"))
    yield made
    made.close()


def test_progress_comes_first_and_then_the_report(client):
    stages, frame = client.ask(request(RIGHT).to_json().encode())

    assert [name for name in stages if name != "check_problem"] == [
        *("build", "device_wait", "start_judge", "load", "correctness", "shutdown", "cleanup")
    ]
    assert frame.kind == "report"
    assert EvalReport.from_json(frame.body).verdict == "correct"


def test_checks_can_be_chosen(client):
    body = request("def work(x):\n    return x.tanh_() * 2\n").to_json().encode()
    _, chosen = client.ask(body, checks=["inputs"])
    _, without = client.ask(body, checks=[])

    assert EvalReport.from_json(chosen.body).verdict == "rejected"
    assert EvalReport.from_json(without.body).verdict == "correct"


def test_infrastructure_and_problem_errors_are_reported_by_type(client):
    _, damaged = client.ask(b"{")
    _, broken = client.ask(request(RIGHT, BROKEN).to_json().encode())
    _, again = client.ask(request(RIGHT).to_json().encode())

    assert (damaged.kind, damaged.fields["type"]) == ("failed", "RecordError")
    assert (broken.kind, broken.fields["type"]) == ("failed", "ProblemError")
    assert again.kind == "report"


def test_a_client_that_leaves_ends_everything(tmp_path):
    leaving = Client(tmp_path)
    slow = "def work(x):\n    import time; time.sleep(20); return x\n"
    leaving.channel.send("evaluate", {"checks": None}, request(slow).to_json().encode())
    while leaving.receive().fields.get("stage") != "correctness":
        continue
    start = time.monotonic()
    leaving.close()

    assert time.monotonic() - start < 5


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    """Yield settings with a home of their own, whose executor is closed in the end."""
    home = tmp_path_factory.mktemp("api")
    limits = [
        f"eval.limits.{name}={getattr(LIMITS, name):g}" for name in ("call_timeout_s", "exit_s")
    ]
    yield load(overrides=[f"home={home}", "eval.timing.enabled=false", *limits], environ={})
    executor = api._executors.pop(("local", home, "auto"), None)
    if executor is not None:
        executor.close()


def test_evaluate_takes_source_text_and_a_problem(settings):
    events: list[str] = []
    report = tilewright.evaluate(
        RIGHT, problem(), config=settings, progress=lambda event, _: events.append(event)
    )

    assert report.verdict == "correct"
    assert "stage" in events
    assert tilewright.evaluate(RIGHT, "add_relu", config=settings, entry="work").verdict == "failed"


def test_source_with_lone_surrogates_is_a_candidate(settings):
    report = tilewright.evaluate(f"# \ud800\n{RIGHT}", problem(), config=settings)

    assert report.verdict == "correct"
    assert report.request.candidate.files[0].text.startswith("# ?\n")


def test_evaluate_takes_paths_and_options(settings, tmp_path):
    (tmp_path / "mine.py").write_text(RIGHT)
    (tmp_path / "twice.py").write_text(TWICE)
    report = tilewright.evaluate(
        tmp_path / "mine.py",
        tmp_path / "twice.py",
        config=settings,
        protocol="official",
        baselines=["eager", str(tmp_path / "mine.py")],
        language="torch",
    )

    assert (report.verdict, report.request.protocol) == ("correct", "official")
    assert [item.name for item in report.request.baselines] == ["eager", "mine"]
    again = tilewright.evaluate(report.request.candidate, report.request.problem, config=settings)
    assert again.verdict == "correct"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("nowhere.py", "add_relu"), ConfigError, "no such file"),
        ((RIGHT, "nothing"), ProblemError, "no problem"),
    ],
)
def test_invalid_requests_are_refused_at_once(settings, arguments, error, message):
    with pytest.raises(error, match=message):
        tilewright.evaluate(*arguments, config=settings)


def test_a_broken_candidate_is_a_verdict_and_a_broken_baseline_is_not(settings, tmp_path):
    (tmp_path / "bad.py").write_text("def work(:\n")

    assert tilewright.evaluate("def work(:\n", problem(), config=settings).verdict == "failed"
    nameless = tilewright.evaluate("x = 1\n", problem(), config=settings)
    assert nameless.outcome.reason == FailureReason.MISSING_ENTRY
    assert "it defines `x`" in nameless.outcome.message
    with pytest.raises(ConfigError, match="baseline"):
        tilewright.evaluate(RIGHT, problem(), config=settings, baselines=[str(tmp_path / "bad.py")])
    with pytest.raises(ConfigError, match="no such folder"):
        api.build_request(RIGHT, problem(), settings, allow_imports=["/nowhere"])


def test_an_event_loop_and_threads_continue_during_an_evaluation(settings):
    ticks: list[float] = []
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def both() -> EvalReport:
        ticking = asyncio.create_task(tick())
        report = await tilewright.evaluate_async(RIGHT, problem(), config=settings)
        ticking.cancel()
        return report

    report = asyncio.run(both())
    stop.set()
    thread.join()

    assert report.verdict == "correct"
    assert len(ticks) > 5


def test_identical_work_is_answered_from_the_report_cache_on_request(settings):
    section = settings.eval.model_copy(update={"reuse": True})
    reusing = settings.model_copy(update={"eval": section})
    source = RIGHT + "# only here\n"
    first = tilewright.evaluate(source, problem(), config=reusing)
    start = time.monotonic()
    again = tilewright.evaluate(source, problem(), config=reusing)
    took = time.monotonic() - start
    judged = tilewright.evaluate(source, problem(), config=settings)
    other = tilewright.evaluate(source + "#\n", problem(), config=reusing)

    assert again == first
    assert took < 0.5
    assert len({first.seed, judged.seed, other.seed}) == 3


def test_a_dead_supervisor_is_an_infrastructure_error_and_replaced(settings):
    executor = api._executor(settings)
    asked = request(RIGHT)
    assert executor.evaluate(asked).verdict == "correct"
    os.kill(executor.pid, signal.SIGKILL)

    with pytest.raises(InfrastructureError, match="the supervisor was lost"):
        executor.evaluate(asked)
    assert executor.evaluate(asked).verdict == "correct"


def test_an_exception_of_the_callback_leaves_a_usable_executor(tmp_path):
    class Stop(Exception):
        pass

    def stop(*_: object) -> None:
        raise Stop

    with LocalExecutor(tmp_path) as executor:
        with pytest.raises(Stop):
            executor.evaluate(request(RIGHT), stop)
        assert executor.pid is None
        with pytest.raises(ProblemError, match="running the reference"):
            executor.evaluate(request(RIGHT, BROKEN))
    assert executor.pid is None


def test_several_workers_judge_at_once(tmp_path):
    with LocalExecutor(tmp_path, workers=2) as executor, ThreadPoolExecutor(3) as pool:
        reports = list(pool.map(executor.evaluate, [request(RIGHT)] * 3))
        assert [report.verdict for report in reports] == ["correct"] * 3
        assert len({item.pid for item in executor.supervisors} - {None}) == 2


def test_an_executor_without_workers_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="at least one worker"):
        LocalExecutor(tmp_path, workers=0)


@pytest.mark.parametrize(
    "names", [["copy.py", "dataclasses.py", "torch.py"], ["tilewright.py"]], ids=["others", "ours"]
)
def test_a_candidate_named_like_a_module_runs_in_no_trusted_process(tmp_path, names):
    """What lies in the folder that we stand in is a candidate, also when Python would import it."""
    text = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\n"
    for name in names:
        (tmp_path / name).write_text(text + "\n\ndef softmax(x):\n    return x.softmax(-1)\n")
    name = names[-1]
    command = [sys.executable, "-m", "tilewright", "eval", name, "--problem", "softmax", "--json"]
    if name == "tilewright.py":
        command[1:3] = ["-P", "-m", "tilewright"]
    command += ["--set", "eval.timing.enabled=false"]
    home = {**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        command, cwd=tmp_path, env=home, capture_output=True, text=True, check=False
    )
    assert done.stderr.count("Traceback") == 0, done.stderr
    assert json.loads(done.stdout)["verdict"] in ("correct", "failed")
    assert not (tmp_path / "ran").exists()
