"""`tilewright bench` as a process: killed, resumed and reported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.faults.bench_kills import killed

pytestmark = pytest.mark.timeout(300)
TIMED = ("--set", "eval.timing.timed_cases=1", "--set", "eval.timing.max_s=0.5")


def test_a_run_that_is_killed_twice_ends_with_the_same_result(tmp_path):
    count = 8
    seen, _ = killed(tmp_path, 2, seed=7, count=count)
    assert len(seen) == count
    assert {len(found) for found in seen.values()} == {1}
    wrong = {ask for ask, (verdict,) in seen.items() if verdict != "correct"}
    assert wrong == {f"bundled/softmax#{n}" for n in range(0, count, 3)}


def test_two_protocols_are_judged_together_and_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    overwrites = "def softmax(x):\n    x.copy_(x.softmax(-1))\n    return x.clone()\n"
    (tmp_path / "rows.jsonl").write_text(json.dumps({"problem": "softmax", "code": overwrites}))

    def tilewright(*words: str) -> str:
        command = [sys.executable, "-m", "tilewright", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    out = tilewright(
        *("bench", "softmax", "--candidates", "rows.jsonl", "--protocol", "strict,official"),
        *("--set", "eval.timing.enabled=false", "--json"),
    )
    document = json.loads(out)
    assert document["left"] == 0
    (flip,) = document["flips"]
    assert flip["verdicts"] == {"strict": "rejected", "official": "correct"}
    assert flip["cause"] == "published rules do not look at inputs after a call"
    page = Path(tilewright("report", document["run"]).strip())
    text = (tmp_path / page).read_text()
    assert "bundled/softmax#0" in text
    assert {item.name for item in (tmp_path / page).parent.iterdir()} >= {
        *("report.html", "report.json", "report.csv", "report.md", "reports", "events.jsonl")
    }


@pytest.mark.timed
def test_the_share_of_timing_is_that_of_the_stages_in_the_reports(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    code = "def softmax(x):\n    return x.softmax(-1)  # {}\n"
    rows = ({"problem": "softmax", "code": code.format(n)} for n in range(2))
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = [sys.executable, "-m", "tilewright", "bench", "softmax", "--json", "--workers", "2"]
    done = subprocess.run(
        [*command, "--candidates", "rows.jsonl", *TIMED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(done.stdout)
    made = document["throughput"]
    reports = [
        json.loads(path.read_text()) for path in (tmp_path / document["run"]).glob("reports/*.json")
    ]
    timing_s = sum(
        stage["wall_s"] for item in reports for stage in item["stages"] if stage["name"] == "timing"
    )
    assert made["candidates_per_s"] == pytest.approx(2 / made["seconds"])
    # A repeated evaluation is timed twice, and its report has the second time alone.
    assert 0.95 * timing_s <= made["timing_shares"]["cpu"] * made["seconds"] < made["seconds"]
    assert f"timing on cpu {made['timing_shares']['cpu']:.0%}" in done.stderr


def test_the_linter_names_weak_problems_and_strict_scores_leave_them_out(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "copy.py").write_text(
        'import torch\n\nCASES = [{"name": "a"}]\n\n\n'
        "def inputs(case, generator):\n    return (torch.randn(64, generator=generator),)\n\n\n"
        "def reference(x):\n    return x.clone()\n"
    )

    def tilewright(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tilewright", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    first = tilewright("problems", "lint", "copy.py", "--json")
    assert first.returncode == 1, first.stderr
    (row,) = json.loads(first.stdout)
    assert row["weak"] == {"strict": ["copy of an input"], "official": ["copy of an input"]}
    assert "1 problem, 1 weak strictly" in first.stderr
    # Looked at once is enough.
    assert "copy of an input" in tilewright("problems", "lint", "copy.py").stdout
    bench = tilewright(
        *("bench", "copy.py", "--candidates", "reference", "--protocol", "strict,official"),
        *("--set", "eval.timing.enabled=false", "--json"),
    )
    assert bench.returncode == 0, bench.stderr
    protocols = json.loads(bench.stdout)["protocols"]
    assert (protocols["strict"]["judged"], protocols["strict"]["weak_left_out"]) == (0, 1)
    assert protocols["official"]["judged"] == 1


def test_an_interrupt_ends_the_run_at_once_and_names_the_resume_command(tmp_path):
    environment = {**os.environ, "TILEWRIGHT_HOME": str(tmp_path / "home")}
    slow = "import time\n\n\ndef softmax(x):\n    time.sleep(15)\n    return x.softmax(-1)\n"
    (tmp_path / "slow.py").write_text(slow)
    words = ("bench", "softmax", "--candidates", "slow.py", "--set", "eval.timing.enabled=false")
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewright", *words],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # Who is started in the background of a shell inherits that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    log = tmp_path / "runs"
    limit = time.monotonic() + 30
    while not any("requests_issued" in item.read_text() for item in log.glob("*/events.jsonl")):
        assert time.monotonic() < limit
        time.sleep(0.05)
    time.sleep(4)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert time.monotonic() - start < 8
    assert "Traceback" not in said
    assert "interrupted" in said
    (run,) = log.iterdir()
    assert f"bench --resume runs/{run.name}" in said
