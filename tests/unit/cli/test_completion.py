"""A shell completes commands, addresses of problems, and settings, as bash asks for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(sys.executable).parent / "tilewright"


def completed(tmp_path, *words):
    """Return what bash would be offered for the last word of a command line."""
    line = " ".join(("tilewright", *words))
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(words)), "HOME": str(tmp_path)}
    variables |= {"_TILEWRIGHT_COMPLETE": "bash_complete", "PATH": os.environ["PATH"]}
    found = subprocess.run([TOOL], env=variables, capture_output=True, text=True, cwd=tmp_path)
    assert found.stderr == ""
    return found.stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("ev",), ["plain,eval"]),
        (("eval", "x.py", "-p", "soft"), ["plain,softmax"]),
        (("bench", "bundled/soft"), ["plain,bundled/softmax"]),
        (("optimize", "rms"), ["plain,rmsnorm"]),
        (("eval", "x.py", "-p", "./mine"), ["file,./mine"]),
        (("eval", "--set", "eval.timing.max_s"), ["plain,eval.timing.max_s="]),
    ],
)
def test_a_word_is_completed(tmp_path, words, wanted):
    assert completed(tmp_path, *words) == wanted


def test_a_name_that_begins_several_problems_offers_all(tmp_path):
    found = completed(tmp_path, "eval", "x.py", "-p", "bundled/")
    assert "plain,bundled/softmax" in found
    assert len(found) > 10
