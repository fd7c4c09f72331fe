"""Titles of problems."""

from __future__ import annotations

import pytest

from tests import sample_reports as reports
from tilewright.records import SourceFile
from tilewright.reports.loader import title_of_problem


@pytest.mark.parametrize("text", ["x = (", "x=" + "-" * 9000 + "1", "x=" + "(" * 9000, "\0"])
def test_a_problem_whose_text_does_not_parse_has_no_title(text):
    file = SourceFile(path="problem.py", text=text)
    problem = reports.request().problem.model_copy(update={"description": "", "source": file})
    assert title_of_problem(problem) == ""
