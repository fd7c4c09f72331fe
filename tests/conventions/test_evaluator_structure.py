"""The evaluator stays readable: a short pipeline of few stages, small classes, typed messages."""

from __future__ import annotations

import ast

import pytest

from tests.conventions.tree import SOURCE, name_of, parsed, python_files
from tilewright.evaluator.pipeline.run import STAGES

EVALUATOR = SOURCE / "evaluator"
MAX_PIPELINE_LINES = 150
MAX_STAGES = 11
MAX_FIELDS = 15
MAX_UNTYPED = 15


def test_the_pipeline_reads_on_one_screen_and_has_few_stages():
    text = (EVALUATOR / "pipeline" / "run.py").read_text("utf-8")
    assert len(text.splitlines()) <= MAX_PIPELINE_LINES
    assert 5 <= len(STAGES) <= MAX_STAGES


def test_every_stage_is_called_by_the_pipeline_itself():
    tree = parsed(EVALUATOR / "pipeline" / "run.py")
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {"evaluate", "_evaluate_once", "_run_stages"} <= functions
    assert all(stage.__module__.startswith("tilewright.evaluator.pipeline.") for stage in STAGES)
    assert len({stage.__name__ for stage in STAGES}) == len(STAGES)


@pytest.mark.parametrize("path", python_files(under=EVALUATOR), ids=name_of)
def test_no_class_has_many_fields(path):
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.ClassDef):
            continue
        declared = [item for item in node.body if isinstance(item, ast.AnnAssign)]
        assert len(declared) <= MAX_FIELDS, f"{node.name} has {len(declared)} fields"


def test_untyped_dictionaries_are_rare():
    found = sum(
        path.read_text("utf-8").count("dict[str, Any]") for path in python_files(under=EVALUATOR)
    )
    assert found <= MAX_UNTYPED
