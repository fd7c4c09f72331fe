"""Bars: rate, latency and memory of the server, with an executor that answers at once.

`python -m benchmarks.serve.load PORT FOLDER` starts that server.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.bars import Bar
from tilewright import __version__
from tilewright.config import load
from tilewright.problems.loader import find_problem
from tilewright.problems.requests import build_request
from tilewright.records import Correct, EvalReport, EvalRequest, ReportEnvironment
from tilewright.scoring.bootstrap import quantile

CLIENTS, TASKS = 50, 3000
RATE, PACED_S = 200, 15
"""Submissions per second of all clients together for the latency, and for how many seconds."""
STORED = 100_000
SOURCE = "import torch\n\n\ndef softmax(x):\n    return torch.softmax(x, -1)  # {}\n"


def _answer(request: EvalRequest, _: object) -> EvalReport:
    return EvalReport(
        verdict="correct",
        speedup=1.5,
        speedup_low=1.4,
        speedup_high=1.6,
        outcome=Correct(),
        environment=ReportEnvironment(device="cpu", device_name="none", host={}, versions={}),
        seed="0" * 32,
        request=request,
        evaluator=__version__,
    )


def serve(port: int, folder: Path) -> None:
    """Serve until killed."""
    import uvicorn

    from tilewright.serve.app import create_app
    from tilewright.serve.service import Service

    overrides = [f"serve.log={folder}/log.jsonl", f"serve.max_queue={STORED}"]
    service = Service(load(overrides=overrides, environ={}), "none", _answer, folder, 8)
    app = create_app(service)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


class Caller:
    """One client with a connection that stays open. Lifetime: one measurement."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def request(self, method: str, path: str, body: bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        """Send one request and return the answer.

        Raises:
            RuntimeError: the server refuses the request.
        """
        self._connection.request(method, path, body, {"content-type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{answer.status}: {text[:200]!r}")
        return json.loads(text)


def _bodies(first: int, count: int) -> list[bytes]:
    problem = find_problem("softmax")
    settings = load(environ={})
    made = build_request(SOURCE.format(0), problem, settings).model_dump(mode="json")
    bodies = []
    for number in range(first, first + count):
        made["candidate"]["files"][0]["text"] = SOURCE.format(number)
        bodies.append(json.dumps({"request": made, "name": f"n{number}"}).encode())
    return bodies


def _submitted(port: int, bodies: list[bytes], every_s: float = 0.0) -> list[float]:
    """Submit from many clients at once; return seconds from each due time to the answer.

    With `every_s`, submissions are due at that interval, even if earlier ones are late. Otherwise a
    client's next submission is due when the server has answered its last one.
    """
    latencies, lock, start = list[float](), threading.Lock(), time.monotonic()

    def work(first: int) -> None:
        caller = Caller(port)
        for place in range(first, len(bodies), CLIENTS):
            due = start + place * every_s if every_s else time.monotonic()
            time.sleep(max(due - time.monotonic(), 0.0))
            caller.request("POST", "/v1/tasks", bodies[place])
            with lock:
                latencies.append(time.monotonic() - due)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies


def _load(port: int) -> tuple[float, list[float]]:
    """Submit all tasks as fast as possible; return finished tasks per second, and latencies."""
    bodies, start = _bodies(0, TASKS), time.monotonic()
    latencies = _submitted(port, bodies)
    watcher = Caller(port)
    while True:
        state = watcher.request("GET", "/v1/queue")
        if not state["waiting"] and not state["running"]:
            break
        time.sleep(0.05)
    return TASKS / (time.monotonic() - start), latencies


def _paced(port: int, first: int) -> list[float]:
    return _submitted(port, _bodies(first, RATE * PACED_S), 1 / RATE)


def _in_memory() -> list[float]:
    """Return latencies with the store in memory, where no request waits for a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        port = _free_port()
        process = _started(port, Path(place))
        try:
            _load(port)
            return _paced(port, TASKS)
        finally:
            process.kill()
            process.wait()


def _resident_mib(pid: int) -> float:
    text = Path(f"/proc/{pid}/statm").read_text(encoding="ascii")
    return int(text.split()[1]) * 4096 / (1 << 20)


def _fill(folder: Path) -> None:
    """Put finished tasks into the store, like those of earlier weeks."""
    from tilewright.serve.store.store import Store
    from tilewright.serve.store.tables import Submitted

    store = Store(folder / "tasks.db")
    report = b"x" * 2000
    futures: list[Any] = []
    for number in range(STORED):
        key = f"old{number}"
        task = Submitted(key, "local", f"p{number % 50}", 1, time.time(), request=b"{}")
        futures += [store.submit(task), store.finish(key, "correct", report)]
        if len(futures) > 20_000:
            for future in futures:
                future.result()
            futures.clear()
            print(f"{number + 1} stored", flush=True)
    for future in futures:
        future.result()
    store.close()


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def _started(port: int, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.serve.load", str(port), str(folder)]
    process = subprocess.Popen(command, env={**os.environ})
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        try:
            Caller(port).request("GET", "/v1/health")
            return process
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one table
    """Return the bars."""
    with tempfile.TemporaryDirectory() as place:
        folder, port = Path(place), _free_port()
        _fill(folder)
        process = _started(port, folder)
        try:
            before = _resident_mib(process.pid)
            rate, flooded = _load(port)
            paced = _paced(port, TASKS)
            grown = _resident_mib(process.pid) - before
            pages, caller = [], Caller(port)
            for after in range(0, STORED, STORED // 20):
                start = time.monotonic()
                caller.request("GET", f"/v1/tasks?limit=100&after={after}")
                pages.append(time.monotonic() - start)
        finally:
            process.kill()
            process.wait()
    flood, p99 = quantile(flooded, 0.99) * 1e3, quantile(paced, 0.99) * 1e3
    in_memory = quantile(_in_memory(), 0.99) * 1e3
    slowest = max(pages) * 1e3
    return [
        Bar("serve: accepted and finished", ">= 200 a second", f"{rate:.0f}", rate >= 200),
        Bar(f"serve: submit, {CLIENTS} clients, {RATE} a second, p99", "< 100 ms",
            f"{p99:.0f} ms on this disk, {in_memory:.0f} ms with the store in memory "
            f"(all at once: {flood:.0f} ms)", p99 < 100),
        Bar(f"serve: memory over {TASKS} tasks, {STORED} stored", "< 60 MiB more",
            f"{grown:+.0f} MiB", grown < 60),
        Bar("serve: slowest page of 100", "< 100 ms", f"{slowest:.0f} ms", slowest < 100),
    ]  # fmt: skip


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]))
