"""Stored pages of studies are those that their logs give, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conventions.tree import ROOT
from tilewright.rl.study.study_log import LOG, read_log
from tilewright.rl.study.study_page import study_pages

LOGS = sorted((ROOT / "docs" / "measurements").glob(f"*/{LOG}"))


def test_there_is_a_stored_study():
    assert LOGS


@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.parent.name)
def test_the_page_is_that_of_its_log(log: Path):
    pages = study_pages(read_log(log))
    stored = {path.name: path.read_text() for path in log.parent.iterdir() if path.name != LOG}
    assert stored == pages
