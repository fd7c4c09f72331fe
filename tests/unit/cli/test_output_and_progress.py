"""Parts of the command line by themselves: lines, progress, waiting for a save."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.loop.test_rollout import CODE, play
from tests.unit.rl.data.test_exports import MODULE
from tilewright.cli import eval as eval_verb
from tilewright.cli.eval import saved, wait_for_change
from tilewright.cli.output import one_line, printable
from tilewright.cli.progress import MEDIAN_ITEMS, STAGES, Progress, describe
from tilewright.records.codes import Stage


def test_text_becomes_one_printable_line():
    assert one_line("a\n  b\n\nc") == "a; b; c"
    text = "a bug: Traceback (most recent call last):\n  File x\nKeyError: 1\n"
    assert one_line(text) == "a bug: KeyError: 1"
    assert printable("a\tb\n\x1b[2J\u202e") == "a\tb\n\\x1b[2J\\x202e"


def test_progress_is_plain_text_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr("tilewright.cli.progress.FIRST_LINE_S", 0.05)
    with Progress("it") as progress:
        progress("sample", {"case": "tiny", "variation": "scale\x1b"})
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("tilewright: it: correctness: tiny, scale\\x1b; ")
    assert len(lines) <= 3
    assert describe("unheard of", {}) == ""


LINES = "".join(
    json.dumps({"level": 1, "problem_id": number, "name": str(number), "code": MODULE}) + "\n"
    for number in range(200)
)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("data", "family", "nano/train", "--to", "f.jsonl", "--extent", "space"), "family"),
        (
            ("data", "conversations", "nano", "--to", "c.jsonl", "--verdicts", "synthetic"),
            "conversations",
        ),
        (("problems", "import", "kernelbench", "--from", "rows.jsonl"), "import of kernelbench"),
        (("train", "replay", "searched"), "replay"),
    ],
)
def test_a_command_that_takes_long_shows_its_progress(run, monkeypatch, words, what):
    monkeypatch.setattr("tilewright.cli.progress.FIRST_LINE_S", 0.001)
    Path("rows.jsonl").write_text(LINES)
    Path("searched").mkdir()
    play(Path("searched"), lambda *_: CODE)
    done = run(*words)
    assert done.exit_code == 0, done.stderr
    shown = [line for line in done.stderr.splitlines() if line.endswith("s so far")]
    assert shown, done.stderr
    assert any(f"{what}: " in line or f"{what}, " in line for line in shown)


def test_a_wait_of_several_workers_is_written_once_and_on_one_line(capsys):
    with Progress("bench") as shown:
        for _ in range(3):
            shown("waiting", {"message": "the device is busy"})
        shown("retry", {"because": "first line\nsecond line"})
    lines = [line.partition("; 0.")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "tilewright: bench: the device is busy",
        "tilewright: bench: evaluating again: first line; second line",
    ]


def test_a_stage_is_shown_in_words():
    assert describe("stage", {"stage": "device_wait"}) == "waiting for the device"
    assert describe("stage", {"stage": "of another version"}) == "of another version"
    shown = {item for item in Stage if item != Stage.TOTAL}
    assert set(STAGES) == shown


@pytest.mark.parametrize(
    ("done", "total", "took_s", "shown"),
    [
        (0, 4, 0.0, "0 of 4, bench"),
        (1, 4, 20.0, "1 of 4, 60 s left, bench"),
        (4, 4, 20.0, "4 of 4, bench"),
        (41, 250, 706.3, "41 of 250, 60 min left, bench"),
        (0, 0, 0.0, "0 of 0, bench"),
    ],
)
def test_a_line_shows_how_much_is_done_and_the_remaining_time(
    capsys, monkeypatch, done, total, took_s, shown
):
    now = [100.0]
    monkeypatch.setattr("tilewright.cli.progress.time.monotonic", lambda: now[0])
    with Progress("bench", verbose=True) as progress:
        progress.reached(0, total)
        now[0] += took_s
        progress.reached(done, total)
        progress("timing", {"case": "a"})
    assert capsys.readouterr().err.startswith(f"tilewright: {shown}: timing: a; {took_s:.1f} s")


def test_work_of_an_earlier_invocation_does_not_count_for_the_remaining_time(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("tilewright.cli.progress.time.monotonic", lambda: now[0])
    with Progress("bench", verbose=True) as progress:
        progress.reached(100, 110)
        progress("timing", {"case": "a"})
        now[0] += 10.0
        progress.reached(102, 110)
        progress("timing", {"case": "b"})
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("tilewright: 100 of 110, bench: timing: a")
    assert second.startswith("tilewright: 102 of 110, 40 s left, bench: timing: b")


def test_a_line_shows_the_rates_of_its_moment(capsys):
    with Progress("bench", verbose=True) as progress:
        progress.show_rates(lambda: f"{progress.events} per second")
        progress("timing", {"case": "a"})
        progress.reached(1, 2)
        progress("timing", {"case": "b"})
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("tilewright: 1 per second, bench: timing: a; ")
    assert second.startswith("tilewright: 1 of 2, 2 per second, bench: timing: b; ")


def test_one_slow_item_changes_the_remaining_time_little(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("tilewright.cli.progress.time.monotonic", lambda: now[0])
    with Progress("bench", verbose=True) as progress:
        progress.reached(0, 20)
        for done, took_s in enumerate([2.0, 2.0, 600.0, 2.0, 2.0], start=1):
            now[0] += took_s
            progress.reached(done, 20)
        progress("timing", {"case": "a"})
    assert "5 of 20, 30 s left" in capsys.readouterr().err


def test_the_remaining_time_follows_the_last_items_alone(capsys, monkeypatch):
    monkeypatch.setattr("tilewright.cli.progress.time.monotonic", lambda: now[0])
    now, total = [0.0], 3 * MEDIAN_ITEMS
    with Progress("bench", verbose=True) as progress:
        progress.reached(0, total)
        for done, took_s in ((2 * MEDIAN_ITEMS - 10, 60.0), (total - 10, 1.0)):
            now[0] += took_s * MEDIAN_ITEMS
            progress.reached(done, total)
        progress("timing", {"case": "a"})
    assert f"{total - 10} of {total}, 10 s left" in capsys.readouterr().err


def test_a_terminal_shows_a_bar_and_lines_that_stay(monkeypatch):
    shown = Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr("tilewright.cli.progress.Console", lambda **_: shown)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress("bench") as progress:
        progress.show_rates(lambda: "0.5 [b]per second")
        progress.reached(1, 4)
        progress("sample", {"case": "[red]", "variation": "scale\x1b"})
        progress.note("one is done")
    text = shown.file.getvalue()
    assert "bench: correctness: [red], scale\\x1b" in text
    assert "1/4" in text
    assert "0.5 [b]per second" in text
    assert "tilewright: one is done" in text


def test_a_saved_file_is_noticed_once_it_is_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(eval_verb, "POLL_INTERVAL_S", 0.001)
    file = tmp_path / "a.py"
    file.write_text("1")
    before = saved([tmp_path])
    assert list(before) == [str(file)]
    looks = iter([before, {}, {"a": (2, 1)}, {"a": (2, 5)}, {"a": (2, 5)}])
    wait_for_change(before, lambda: next(looks))
    assert next(looks, None) is None
