"""Loggers: a live run and an old one give equal curves, and a logger that fails stops nothing."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tests.unit.integrations.logger_stores import curves, events_of, started
from tilewright.errors import ConfigError
from tilewright.integrations import run_loggers
from tilewright.integrations.run_loggers import check_loggers, logged, send
from tilewright.integrations.run_series import series_of
from tilewright.records.event_log import EventLog

LOGGERS = ("tensorboard", "trackio", "wandb", "mlflow")
pytestmark = pytest.mark.filterwarnings("default")
"""The packages of loggers warn about each other."""
UNTIMED = ("--set", "eval.timing.enabled=false")


@pytest.fixture(params=LOGGERS)
def logger(request, tmp_path, monkeypatch):
    """Return the name of a logger that is installed, with stores of its own."""
    for name in LOGGERS:
        # Their packages read them once, when they are imported.
        monkeypatch.delenv(f"{name.upper()}_DIR", raising=False)
    pytest.importorskip(request.param)
    if request.param == "trackio":
        import trackio

        monkeypatch.setattr(trackio.utils, "TRACKIO_DIR", tmp_path / "trackio", raising=False)
    return request.param


@pytest.fixture
def warnings():
    return []


def state(run, logger):
    files = sorted(run.glob(f"loggers/{logger}-*.json"))
    return [json.loads(file.read_text()) for file in files]


def shown(run, logger, number=0):
    found = state(run, logger)[number]
    return curves(logger, run, found["name"], found["key"])


def wanted(run, events):
    series, found = series_of(run), {}
    for event in events:
        if point := series.add(event):
            for name, value in point.values.items():
                found.setdefault(name, []).append((point.step, value))
    return {name: sorted(set(points)) for name, points in found.items()}


def close_to(first, second):
    assert first.keys() == second.keys()
    for name, points in first.items():
        assert [step for step, _ in points] == [step for step, _ in second[name]], name
        values = [value for _, value in second[name]]
        # TensorBoard keeps 32 bits.
        assert [value for _, value in points] == pytest.approx(values, rel=1e-6), name


@pytest.mark.parametrize("kind", ["optimize", "train"])
def test_a_live_run_and_the_same_run_sent_later_give_equal_curves(
    logger, kind, tmp_path, warnings, monkeypatch
):
    monkeypatch.setattr(run_loggers, "PERIOD_S", 0.05)
    run, events = tmp_path / f"{logger}-{kind}", events_of(kind)
    run.mkdir()
    with EventLog(run) as log, logged(run, (logger,), warnings.append):
        for event in events[:20]:
            log.append(event)
        time.sleep(0.3)
        log.extend(events[20:30])
    # A resumed run continues its curves, and repeats no point.
    with EventLog(run) as log, logged(run, (logger,), warnings.append):
        log.extend(events[30:])
    assert warnings == []
    sent = send(run, logger)
    assert sent.name == f"{run.name}-2"
    live, later = shown(run, logger, 0), shown(run, logger, 1)
    assert live == later
    close_to(live, wanted(run, events))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_of_bench_gives_equal_curves(logger, run, tmp_path):
    names = ("--set", f"loop.log={logger}")
    done = run("bench", "softmax", "--candidates", "reference", *UNTIMED, *names, "--json")
    assert "logger" not in done.stderr, done.stderr
    folder = tmp_path / json.loads(done.stdout)["run"]
    again = run("report", str(folder), "--to", logger)
    assert f"1 points are in {logger}" in again.stderr
    assert shown(folder, logger, 0) == shown(folder, logger, 1)
    assert shown(folder, logger)["verdicts/correct"] == [(1, 1.0)]


def test_a_logger_that_cannot_write_gives_one_warning(tmp_path, warnings):
    pytest.importorskip("tensorboard")
    run = tmp_path / "run"
    run.mkdir()
    (run / "tensorboard").write_text("in the way")
    with EventLog(run) as log, logged(run, ("tensorboard",), warnings.append):
        log.extend(events_of())
    (text,) = warnings
    assert text.startswith("logger tensorboard failed: ")
    assert f"tilewright report {run} --to tensorboard" in text
    with pytest.raises(ConfigError, match="logger tensorboard failed"):
        send(run, "tensorboard")


def test_a_logger_that_hangs_is_left_behind(tmp_path, warnings, monkeypatch):
    pytest.importorskip("tensorboard")
    from tilewright.integrations import tensorboard_logger

    free = threading.Event()
    monkeypatch.setattr(tensorboard_logger, "opened", lambda *_: free.wait(30))
    monkeypatch.setattr(run_loggers, "CLOSE_S", 0.2)
    begun = time.monotonic()
    with EventLog(tmp_path) as log, logged(tmp_path, ("tensorboard",), warnings.append):
        log.extend(events_of())
    assert time.monotonic() - begun < 5
    free.set()
    (text,) = warnings
    assert "still sends after 0.2 s" in text


class Kept:
    """A logger that keeps its points in memory."""

    key = "kept"

    def __init__(self):
        self.steps: list[int] = []

    def send(self, points):
        self.steps += [point.step for point in points]

    def keep(self, candidate, folder):
        """Keep no files."""

    def close(self):
        """Do nothing."""


def test_a_log_that_begins_late_is_sent_whole(tmp_path, warnings, monkeypatch):
    kept = Kept()
    module = SimpleNamespace(opened=lambda *_: kept)
    monkeypatch.setitem(sys.modules, "tilewright.integrations.kept_logger", module)
    monkeypatch.setattr(run_loggers, "PERIOD_S", 0.02)
    with logged(tmp_path, ("kept",), warnings.append):
        # Several looks at a folder without a log, as while a training loads its model.
        time.sleep(0.2)
        with EventLog(tmp_path) as log:
            log.extend(events_of("train"))
    assert warnings == []
    assert kept.steps == [1, 2, 3, 4, 5, 5]


def test_the_run_itself_fails_as_before(tmp_path, warnings):
    pytest.importorskip("tensorboard")

    def fails():
        with EventLog(tmp_path) as log, logged(tmp_path, ("tensorboard",), warnings.append):
            log.append(started())
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails()
    assert warnings == []


def test_a_missing_package_is_named_with_its_command(run, tmp_path, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    with pytest.raises(ConfigError, match=r"pip install 'tilewright\[trackio\]'"):
        check_loggers(("trackio",), "loop.log")
    assert run("report", str(tmp_path), "--to", "trackio").exit_code == 2
    wrong = run("report", str(tmp_path), "--to", "nothing")
    assert wrong.exit_code == 2
    assert "--to 'nothing': write some of tensorboard, trackio" in wrong.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small file system")
def test_a_full_disk_costs_a_warning(logger, tmp_path):
    script = """
import sys, time
from pathlib import Path
from tests.unit.integrations.logger_stores import events_of
from tilewright.integrations.run_loggers import logged
from tilewright.records.event_log import EventLog
run, said = Path(sys.argv[1]), []
start = time.monotonic()
with EventLog(run) as log, logged(run, (sys.argv[2],), said.append):
    log.extend(events_of(count=400))
print(len(said), said, file=sys.stderr)
sys.exit(0 if len(said) == 1 and "failed" in said[0] else 1)
"""
    runs, full = tmp_path / "runs", tmp_path / "full"
    (runs / "run").mkdir(parents=True)
    full.mkdir()
    places = {
        "tensorboard": runs / "run" / "tensorboard",
        "trackio": full,
        "wandb": runs / "run" / "wandb",
        "mlflow": full,
    }
    places[logger].mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "TRACKIO_DIR": str(full / "trackio"),
        "MLFLOW_TRACKING_URI": f"sqlite:///{full / 'mlflow.db'}",
    }
    mount = f"mount -t tmpfs -o size=16k none {places[logger]}"
    ready = subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True)
    if ready.returncode:
        pytest.skip("no file system can be mounted here")
    command = f'{mount} && exec {sys.executable} -c "$SCRIPT" {runs / "run"} {logger}'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", command],
        env={**environment, "SCRIPT": script},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-3000:]
