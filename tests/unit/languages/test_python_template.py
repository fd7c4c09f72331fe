"""Generated Python: values are inserted as they are, and a missing one is an error."""

from __future__ import annotations

import ast

import pytest
from jinja2 import UndefinedError

from tilewright.languages.python_template import render_python


def test_values_are_inserted_as_they_are_or_as_literals(tmp_path):
    template = tmp_path / "made.py.j2"
    template.write_text("{{ code }}\nA = {{ value | literal }}\nB = {{ text | source }}\n")
    hostile = "{{ value }} \"\"\" ''' \\ {% if x %}\n"
    made = render_python(template, code="x = 1", value={"a": None}, text=hostile)
    names: dict[str, object] = {}
    exec(compile(ast.parse(made), "made.py", "exec"), names)
    assert (names["x"], names["A"], names["B"]) == (1, {"a": None}, hostile)


def test_a_value_that_a_template_lacks_is_an_error(tmp_path):
    template = tmp_path / "made.py.j2"
    template.write_text("{{ absent }}\n")
    with pytest.raises(UndefinedError, match="absent"):
        render_python(template)
