"""Commands read the files that commit a9ccb78 wrote, or refuse them with their path."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.test_serve import Server, asked
from tilewright.evaluator.timing.calibration import read_calibration

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")
VERSION_1 = Path(__file__).parents[1] / "golden" / "v1"
REPORTS = sorted(path.name for path in VERSION_1.glob("eval_*.json"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return Path(shutil.copytree(VERSION_1, tmp_path / "v1"))


def tilewright(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TILEWRIGHT_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "tilewright", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", REPORTS)
def test_explain_reads_a_report(files, name):
    done = tilewright(files, "explain", name, "--json")
    assert done.returncode == 0, done.stderr
    old = json.loads((files / name).read_text("utf-8"))
    assert json.loads(done.stdout)["verdict"] == old["verdict"]


@pytest.mark.parametrize("run", ["bench", "optimize", "rl"])
def test_report_and_view_read_a_run(files, run):
    done = tilewright(files, "report", run)
    assert done.returncode == 0, done.stderr
    assert (files / run / "report.html").stat().st_size > 10_000
    viewed = tilewright(files, "view", run, "--json")
    lines = (files / run / "events.jsonl").read_text("utf-8").splitlines()
    finished = [line for line in lines if line.startswith('{"event":"told"')]
    assert len(json.loads(viewed.stdout)["turns"]) == len(finished) > 0


def test_bench_resumes_a_run_and_repeats_no_evaluation(files):
    before = (files / "bench" / "events.jsonl").read_bytes()
    done = tilewright(files, "bench", "--resume", "bench")
    assert done.returncode == 0, done.stderr
    assert "0 judged" in done.stderr
    assert (files / "bench" / "events.jsonl").read_bytes() == before


def test_a_resumed_run_without_its_recording_is_refused_with_the_path(files):
    done = tilewright(files, "optimize", "--resume", "optimize")
    assert done.returncode == 6
    assert "rmsnorm: no such folder" in done.stderr


def test_replay_computes_the_advantages_of_a_run(files):
    pytest.importorskip("torch")
    done = tilewright(files, "train", "replay", "rl", "--json")
    assert done.returncode == 0, done.stderr
    assert {"paper", "released_code", "tilewright"} <= set(done.stdout.split('"'))


def test_a_damaged_line_of_a_run_is_named_and_the_rest_is_read(files):
    log = files / "bench" / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    place = next(n for n, line in enumerate(lines) if line.startswith(b'{"event":"told"'))
    lines[place] = lines[place].replace(b'"verdict":"', b'"verdict":"un')
    log.write_bytes(b"".join(lines))
    done = tilewright(files, "report", "bench")
    assert done.returncode == 0, done.stderr
    assert f"events.jsonl:{place + 1}: " in done.stderr
    assert len((files / "bench" / "report.csv").read_text("utf-8").splitlines()) == 2


def test_serve_answers_with_the_results_of_its_old_store(files, tmp_path):
    home = tmp_path / "served"
    server = Server(home)
    assert server.stop() == 0
    store = next(home.rglob("tasks.db"))
    for path in store.parent.glob("tasks.db*"):
        path.unlink()
    database = sqlite3.connect(store)
    database.executescript((files / "tasks.sql").read_text("utf-8"))
    [(key, verdict)] = database.execute("SELECT key, verdict FROM tasks").fetchall()
    database.close()
    server.start()
    try:
        status, task = asked(f"{server.url}/v1/tasks/{key}")
        assert (status, task["state"], task["verdict"]) == (200, "done", verdict)
        status, report = asked(f"{server.url}/v1/tasks/{key}/report")
        assert (status, report["schema_version"], report["verdict"]) == (200, 2, verdict)
    finally:
        server.stop()


def test_a_calibration_is_used(tmp_path):
    # As `doctor --calibrate` wrote it: the device's key, and a sigma for each class.
    text = '{\n "AMD EPYC, cores 2": [\n  0.02,\n  0.01,\n  0.003,\n  0.008\n ]\n}'
    (tmp_path / "calibration.json").write_text(text, encoding="utf-8")
    found = read_calibration(tmp_path, "AMD EPYC, cores 2")
    assert found.measured
    assert found.sigmas == (0.02, 0.01, 0.003, 0.008)
