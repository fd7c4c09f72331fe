"""`integrations run popcorn`: the lines of GPU MODE's bot, from our verdicts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.gpumode_tasks import write_task
from tilewright.integrations.popcorn import time_text
from tilewright.problems.sets.gpumode import SET


@pytest.mark.slow
def test_a_submission_passes_or_fails_as_the_bot_says(tmp_path, run):
    folder = write_task(tmp_path / "clone")
    quick = ("--set", "eval.timing.max_problem_s=1", "--task", str(folder))
    done = run("integrations", "run", "popcorn", str(folder / "right.py"), *quick)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "\N{WHITE HEAVY CHECK MARK} Testing successful",
        "",
        "\N{WHITE HEAVY CHECK MARK} rows: 3",
        "\N{WHITE HEAVY CHECK MARK} rows: 5; scales: [1, 2]",
    ]
    board = run(
        *("integrations", "run", "popcorn", str(folder / "right.py"), *quick),
        *("--mode", "leaderboard", "--json"),
    )
    document = json.loads(board.stdout)
    assert [item["mode"] for item in document["runs"]] == ["test", "leaderboard"]
    assert document["lines"][1] == "\N{WHITE HEAVY CHECK MARK} Leaderboard run successful"
    assert document["lines"][-1].startswith("score (geom): ")
    wrong = run("integrations", "run", "popcorn", str(folder / "wrong.py"), *quick)
    assert wrong.exit_code == 1
    lines = wrong.stdout.splitlines()
    assert lines[:3] == ["\N{CROSS MARK} Testing failed", "", "\N{CROSS MARK} rows: 3"]
    assert "expected" in lines[3]
    # The second size was not judged, so it is not shown as passed.
    assert len(lines) == 4


def test_a_missing_task_is_one_line(tmp_path, run):
    (tmp_path / "one.py").write_text("def custom_kernel(data):\n    return data\n")
    done = run("integrations", "run", "popcorn", "one.py", "--task", "nowhere")
    assert done.exit_code in (2, 3)
    assert "nowhere" in done.stderr


def test_times_have_the_units_of_the_bot():
    assert [time_text(value) for value in (1500.0, 2500.0, 3e6, 25e6)] == [
        *("1500.0 ns", "2.50 \N{MICRO SIGN}s", "3.00 ms", "25.0 ms"),
    ]


def test_every_task_of_a_clone_is_read_or_refused_by_name():
    clone = os.environ.get("GPUMODE_CLONE")
    if not clone:
        pytest.skip("not shown: GPUMODE_CLONE names no clone of reference-kernels")
    tasks = {path.parent.name for path in Path(clone).glob("problems/**/task.yml")}
    found = SET.read(Path(clone), "")
    assert len(found.problems) >= 30
    assert len(found.problems) + len(found.skipped) == 42
    assert {problem.id.rpartition("/")[2] for problem in found.problems} <= tasks
    assert all(re.search(r"/problems/\S+/\S+: \w+", text) for text in found.skipped), found.skipped
