"""Bars: the dashboard's overview with many stored tasks, and what a follower costs the tasks."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.serve import load
from tilewright.scoring.bootstrap import median

NULL_TASKS, RUNS = 1000, 5
"""Tasks of a run, and runs with a follower, each next to one without."""
MAX_OPEN_S, MAX_COST = 2.0, 1.03


def _seconds(port: int, first: int) -> float:
    """Return the seconds until all null tasks have ended."""
    bodies, watcher, start = load._bodies(first, NULL_TASKS), load.Caller(port), time.monotonic()
    load._submitted(port, bodies)
    while True:
        state = watcher.request("GET", "/v1/queue")
        if not state["waiting"] and not state["running"]:
            return time.monotonic() - start
        time.sleep(0.01)


class Follower:
    """A reader of the overview's events, as an open dashboard is. Lifetime: its `with` block."""

    def __init__(self, port: int) -> None:
        self._answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/overview/events")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self.events = 0

    def _read(self) -> None:
        # Another thread closes the answer while this one waits for the next line.
        with suppress(OSError, ValueError, AttributeError):
            for line in self._answer:
                self.events += line.startswith(b"event:")

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._answer.close()


def page_seconds(address: str) -> float | None:
    """Return the seconds until a browser shows a page, or `None` without Chromium."""
    from selenium import webdriver

    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        return None
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        browser.get("about:blank")
        start = time.monotonic()
        browser.get(address)
        while browser.execute_script("return document.getElementById('sentence').innerText") == "":
            time.sleep(0.01)
        return time.monotonic() - start
    finally:
        browser.quit()


def run(only: str = "") -> list[Bar]:  # noqa: ARG001 - one table
    """Return the bars."""
    with tempfile.TemporaryDirectory() as place:
        folder, port = Path(place), load._free_port()
        load._fill(folder)
        process = load._started(port, folder)
        try:
            caller, start = load.Caller(port), time.monotonic()
            found = caller.request("GET", "/v1/overview")
            opened_s = time.monotonic() - start
            ready_s = page_seconds(f"http://127.0.0.1:{port}/")
            alone, followed = list[float](), list[float]()
            _seconds(port, 0)
            for number in range(1, 2 * RUNS, 2):
                alone.append(_seconds(port, number * NULL_TASKS))
                with Follower(port):
                    followed.append(_seconds(port, (number + 1) * NULL_TASKS))
        finally:
            process.kill()
            process.wait()
    cost = median(followed) / median(alone)
    stored = sum(found["tasks"].values())
    return [
        Bar(f"dashboard: overview with {stored} stored tasks", "< 2 s", f"{opened_s:.2f} s",
            opened_s < MAX_OPEN_S),
        Bar("dashboard: the page in a browser, with as many", "< 2 s",
            "no browser" if ready_s is None else f"{ready_s:.2f} s",
            ready_s is not None and ready_s < MAX_OPEN_S),
        Bar(f"dashboard: {NULL_TASKS} null tasks with one open, median of {RUNS}",
            "< 1.03 times", f"{cost:.3f} times", cost < MAX_COST),
    ]  # fmt: skip
