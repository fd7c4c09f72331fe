"""`tilewright eval` of candidates without their entry point."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("text", "words", "said", "hint"),
    [
        ("def mine(x): ...\n", (), "it defines `mine`. Rename it to `softmax`", "--entry mine"),
        ("def mine(x): ...\n", ("--entry", "yours"), "Rename it to `yours`", "--entry mine"),
        ("", (), "it defines nothing", ""),
    ],
)
def test_a_missing_entry_point_is_a_failure_with_a_hint_for_the_terminal(
    run, text, words, said, hint
):
    Path("candidate.py").write_text(text)
    found = run("eval", "candidate.py", "--problem", "softmax", *words)
    assert found.exit_code == 1
    assert said in " ".join(found.stdout.split())
    # Other interfaces show the report too, and have no such option.
    assert "--entry" not in found.stdout
    lines = [line for line in found.stderr.splitlines() if "--entry" in line]
    assert lines == ([f"tilewright: or evaluate another name of it: {hint}"] if hint else [])
