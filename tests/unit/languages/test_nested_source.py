"""A function with everything it needs becomes one function of another file."""

from __future__ import annotations

import pytest

from tilewright.languages.nested_source import CannotNest, nested
from tilewright.problems.loader import BUNDLED

FILE = '''"""A file."""
from __future__ import annotations
import math
import os

SCALE, OTHER = 3, 4
UNUSED = os.sep
if SCALE > 2:
    OFFSET = 1
else:
    OFFSET = 2


def helper(x: int = OFFSET) -> Box:
    return Box(math.floor(x) * SCALE)


class Box:
    def __init__(self, value):
        super().__init__()
        self.value = value


def inputs(case):
    return case


def reference(x):
    """Return a number.

    This text keeps its lines.
    """
    return helper(x + 0.5).value
'''


def test_a_nested_function_computes_the_same_and_shares_no_name():
    text = nested(FILE, "reference", "inner")
    names: dict[str, object] = {"SCALE": 100, "helper": None, "math": None}
    exec(text, names)
    assert set(names) == {"SCALE", "helper", "math", "inner", "__builtins__"}
    made = names["inner"]
    assert callable(made)
    assert made()(2) == 6
    assert "This text keeps its lines." in made().__doc__


def test_only_the_statements_that_are_needed_are_copied():
    text = nested(FILE, "reference", "inner")
    for word in ("UNUSED", "import os", "inputs", "__future__"):
        assert word not in text
    assert "OFFSET = 2" in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from torch import *\ndef reference(x):\n    return x\n", "imports"),
        ("n = 0\ndef reference(x):\n    global n\n    return x\n", "global"),
        ("def other(x):\n    return x\n", "reference"),
    ],
)
def test_a_file_that_would_mean_something_else_is_refused(text, why):
    with pytest.raises(CannotNest, match=why):
        nested(text, "reference", "inner")


def test_the_reference_of_every_bundled_function_can_be_nested():
    texts = [path.read_text(encoding="utf-8") for path in sorted(BUNDLED.glob("*/problem.py"))]
    functions = [text for text in texts if "def reference" in text]
    assert len(functions) > 8
    for text in functions:
        compile(nested(text, "reference", "inner"), "problem.py", "exec")
