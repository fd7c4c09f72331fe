"""Calls of the MCP tools that a newcomer tries: each works, or its message says what to do."""

from __future__ import annotations

import asyncio

import pytest

from tests.services.test_mcp import HONEST, UNTIMED, connected

pytestmark = pytest.mark.timeout(300)

CALLS = [
    ("best_code", {}, True, "no turn is correct yet, so there is no best code"),
    ("history", {}, False, "No turn yet: `evaluate` makes the first."),
    ("evaluate", {}, True, "evaluate: `code` is missing"),
    ("evaluate", {"code": 5}, True, "evaluate: `code` must be text"),
    (
        "evaluate",
        {"code": ""},
        False,
        "nor `softmax`; it defines nothing",
    ),
    ("evaluate", {"code": "def softmax(x:"}, False, "line 1: '(' was never closed"),
    ("evaluate", {"code": "x = 1"}, False, "it defines `x`. Rename it to `softmax`"),
    ("evaluate", {"code": f"```python\n{HONEST.read_text()}```"}, False, "Verdict: correct."),
    ("explain", {"turn": "x"}, True, "explain: `turn` must be a whole number"),
    ("explain", {"turn": 99}, True, "there is no turn 99; the last ones are: 1, 2, 3, 4"),
    ("best_code", {}, False, "def softmax(x):"),
    ("problem", {"name": "softmax"}, False, "def reference(x):"),
    ("eval", {"code": "x = 1"}, True, "no tool 'eval'; did you mean evaluate?"),
    ("submit", {}, True, "no tool 'submit'; the tools are evaluate, explain, problem"),
    ("evaluate", {"source": "x = 1"}, True, "there is no argument `source`; it takes `code`"),
    (
        "evaluate",
        {"code": "x = 1", "problem": "rmsnorm"},
        True,
        "there is no argument `problem`; it takes `code`",
    ),
    ("explain", {}, True, "explain: `turn` is missing"),
    ("explain", {"turn": 0}, True, "there is no turn 0; the last ones are: 1, 2, 3, 4"),
]
"""Calls that a newcomer tries, in this order: tool, arguments, is it an error, and its text."""


def test_calls_that_a_newcomer_tries(tmp_path):
    async def tried() -> None:
        async with connected(tmp_path, "softmax", *UNTIMED) as call:
            for name, arguments, is_error, text in CALLS:
                failed, answer = await call(name, **arguments)
                assert failed is is_error, (name, answer)
                assert text in answer
                assert "pydantic" not in answer
                assert "--entry" not in answer

    asyncio.run(tried())
