"""Predictions that name no problem are matched by their instruction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.problems.sets.test_gold_file import gold
from tilewright.loop.existing_answers import read_answers
from tilewright.problems.imported_sets import problem_set
from tilewright.problems.sets.gold_file import SEPARATOR, problem_of
from tilewright.records import Problem

HALF = "Halves each element.\nOf integers, too."
ASKED = (
    "Functional Description: {about}\nWrapper Entry Information: {wrapper}(x) -> Tensor\nMath: -"
)


@pytest.fixture
def problems(tmp_path: Path) -> list[Problem]:
    """Return operators of T of which two are described, and kernels of G."""
    data = tmp_path / "clone" / "data"
    for group, names in (("T", ("half", "third", "sum")), ("G", ("half", "twin", "other_twin"))):
        folder = data / f"TritonBench_{group}_v1"
        folder.mkdir(parents=True)
        for name in names:
            operator = name.removeprefix("other_")
            text = gold(
                operator, f"def {operator}(x):\n    return x / 2  # {group}\n", f"{operator}(1)"
            )
            (folder / f"{name}.py").write_text(text)
    described = [
        {"file": "half.py", "description": HALF},
        {"file": "third.py", "description": "Halves each element."},
    ]
    (data / "TritonBench_T_v1.jsonl").write_text(json.dumps(described))
    return problem_set("tritonbench").read(tmp_path / "clone", "x").problems


def read(
    folder: Path, problems: list[Problem], *rows: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    path = folder / "predictions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    answers = read_answers(str(path), problems)
    return {ask.id: files[0].text for ask, files in answers.sources.items()}, answers.skipped


@pytest.mark.parametrize(
    ("about", "wrapper", "found"),
    [
        (HALF, "anything", "t/half"),
        (HALF.replace("\n", ""), "anything", "t/half"),
        ("Halves each element.", "half", "t/third"),
        ("Sums up.", "torch.sum", "t/sum"),
        ("Of integers", "half", "t/half"),
    ],
)
def test_an_instruction_identifies_its_problem(tmp_path, problems, about, wrapper, found):
    asked = ASKED.format(about=about, wrapper=wrapper)
    for row in ({"instruction": asked, "predict": "x = 1", "label": ""}, {"prompt": asked}):
        sources, skipped = read(tmp_path, problems, {"predict": "x = 1", **row})
        assert (sources, skipped) == ({f"tritonbench/{found}#0": "x = 1"}, [])


def test_an_instruction_for_an_unknown_problem_is_skipped(tmp_path, problems):
    asked = ASKED.format(about="Takes roots.", wrapper="root")
    for some in (problems, problems[:1]):
        sources, (skipped,) = read(tmp_path, some, {"instruction": asked, "predict": "x = 1"})
        assert sources == {}
        assert "no problem of this run has the name 'root'" in skipped


def test_a_label_identifies_the_problem_by_its_gold_source(tmp_path, problems):
    label = "\ndef half(x):\n    return x / 2  # G<|im_end|>\n"
    twin = "def twin(x):\n    return x / 2  # G"
    rows = [
        {"instruction": "Write.", "predict": "x = 1", "label": label},
        {"instruction": "Write.", "predict": "x = 2", "label": label},
        {"instruction": "Write.", "predict": "x = 3", "label": twin},
        {"instruction": "Write.", "predict": "x = 4", "label": twin, "file": "twin.py"},
    ]
    sources, (skipped,) = read(tmp_path, problems, *rows)
    assert sources == {
        "tritonbench/g/half#0": "x = 1",
        "tritonbench/g/half#1": "x = 2",
        "tritonbench/g/twin#0": "x = 4",
    }
    assert "predictions.jsonl:3" in skipped


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1", "x = 1"),
        ("```python\nx = 1\n```<|im_end|>", "x = 1\n"),
        ("Thus:\n```python\nx = 1<|EOT|>", "x = 1\n"),
        ("```python\nx = 1\n```\nBetter:\n```python\nx = 2\n```\nDone.", "x = 2\n"),
    ],
)
def test_a_prediction_is_taken_out_of_its_fence(tmp_path, problems, text, code):
    sources, _ = read(tmp_path, problems, {"file": "sum.py", "predict": text})
    assert list(sources.values()) == [code]


def test_kernelbenchx_predictions_use_the_first_code_block(tmp_path, problems):
    (problem,) = (item for item in problems if item.id.endswith("/sum"))
    problem = problem.model_copy(update={"id": "kernelbenchx/Math/sum", "description": "Sums up."})
    asked = ASKED.format(about="Sums up.", wrapper="sum")
    text = "```python\nx = 1\n```\nor\n```python\nx = 2\n```"
    sources, _ = read(tmp_path, [problem], {"instruction": asked, "predict": text})
    assert sources == {"kernelbenchx/Math/sum#0": "x = 1\n"}


def test_code_fields_are_used_unchanged(tmp_path, problems):
    sources, _ = read(tmp_path, problems, {"file": "sum.py", "code": "```python\nx = 1\n```"})
    assert list(sources.values()) == ["```python\nx = 1\n```"]


@pytest.mark.parametrize(
    ("identity", "kept"),
    [("kernelbenchx/Math/half", "x = 1\n"), ("tritonbench/t/half", f"x = 1\n{SEPARATOR}\ny\n")],
)
def test_tests_below_an_answer_are_left_out_where_the_benchmark_does_so(tmp_path, identity, kept):
    problem = problem_of(
        gold("half", "def half(x):\n    return x\n", "half(1)"), identity, "half.py"
    )
    (tmp_path / "half.py").write_text(f"x = 1\n{SEPARATOR}\ny\n")

    answers = read_answers(str(tmp_path), [problem])

    assert [file.text for (file,) in answers.sources.values()] == [kept]
