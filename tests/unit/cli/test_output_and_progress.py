"""Parts of the command line by themselves: lines, progress, waiting for a save."""

from __future__ import annotations

from tilewright.cli import eval as eval_verb
from tilewright.cli.eval import saved, wait_for_change
from tilewright.cli.output import one_line, printable
from tilewright.cli.progress import Progress, bar_of, describe


def test_lines():
    assert one_line("a\n  b\n\nc") == "a; b; c"
    text = "a bug: Traceback (most recent call last):\n  File x\nKeyError: 1\n"
    assert one_line(text) == "a bug: KeyError: 1"
    assert printable("a\tb\n\x1b[2J\u202e") == "a\tb\n\\x1b[2J\\x202e"


def test_progress_is_plain_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr("tilewright.cli.progress.FIRST_LINE_S", 0.05)
    with Progress("it") as progress:
        progress("sample", {"case": "tiny", "variation": "scale\x1b"})
        progress._over.wait(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("tilewright: it: correctness: tiny, scale\\x1b; ")
    assert len(lines) <= 3
    assert describe("unheard of", {}) == ""


def test_a_bar_shows_how_much_is_done_and_what_is_left():
    assert bar_of(0, 4, None) == "[....................] 0 of 4"
    assert bar_of(1, 4, 60.0) == "[#####...............] 1 of 4, 60 s left"
    assert bar_of(4, 4, None) == "[####################] 4 of 4"
    assert bar_of(41, 250, 3600.0) == "[###.................] 41 of 250, 60 min left"
    assert bar_of(0, 0, None) == "[....................] 0 of 0"


def test_what_was_done_in_an_earlier_sitting_says_nothing_of_what_is_left(capsys, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("tilewright.cli.progress.time.monotonic", lambda: now[0])
    with Progress("bench", verbose=True) as progress:
        progress.reached(100, 110)
        progress("timing", {"case": "a"})
        now[0] += 10.0
        progress.reached(102, 110)
        progress("timing", {"case": "b"})
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("tilewright: [##################..] 100 of 110, bench: timing: a")
    assert second.startswith("tilewright: [##################..] 102 of 110, 40 s left, bench:")


def test_a_save_is_seen_once_it_is_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(eval_verb, "POLL_INTERVAL_S", 0.001)
    file = tmp_path / "a.py"
    file.write_text("1")
    before = saved([tmp_path])
    assert list(before) == [str(file)]
    looks = iter([before, {}, {"a": (2, 1)}, {"a": (2, 5)}, {"a": (2, 5)}])
    wait_for_change(before, lambda: next(looks))
    assert next(looks, None) is None
