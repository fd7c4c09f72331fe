"""The bar of published predictions, over a small clone of our own with scripts of our own."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.accuracy.published_predictions.__main__ import main
from benchmarks.accuracy.published_predictions.clone import (
    Prediction,
    gold_file,
    read_predictions,
    read_tests,
    recorded_files,
)
from benchmarks.accuracy.published_predictions.comparison import (
    STOPS_EARLY,
    UNEXPLAINED,
    Compared,
    accuracies,
    bars,
)
from benchmarks.accuracy.published_predictions.kernelbenchx import RECORDS, recorded
from benchmarks.accuracy.published_predictions.rules import NO_CUDA, Evidence, find_rule
from benchmarks.accuracy.published_predictions.scripts import STOPPED, Outcome, read_outcomes
from tests.unit.problems.sets.test_gold_file import gold
from tilewright.cli.main import cli
from tilewright.errors import ProblemError
from tilewright.problems.sets.gold_file import problem_of
from tilewright.records.events import EvalSummary

CALL_SCRIPT = """
import json, subprocess
from pathlib import Path

statis_path = py_folder = py_interpreter = "/nowhere"

def get_test(folder, files):
    return [Path(folder, name).read_text().split("#" * 146)[-1] for name in files]

def read(path):
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert len(rows) == len(json.loads(Path(statis_path).read_text())), "rows"
    return rows

def get_codes_for_test(path):
    rows = read(path)
    files = [row["file"] for row in rows]
    return [row["predict"] for row in rows], get_test(py_folder, files), files

def get_code(path):
    return get_codes_for_test(path)

def process_code(code):
    return code.replace("CONSTANT = 2\\n", "")

def run_script_on_gpu(code, test, name, folder, gpu):
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code + "\\n" + "#" * 146 + "\\n" + test)
    done = subprocess.run([py_interpreter, path], capture_output=True, text=True)
    print(f"=== Output for {name} on GPU {gpu} ===")
    print(done.stdout)
    print(f"=== Errors for {name} on GPU {gpu} ===")
    print(done.stderr)
    return done.returncode == 0, name

def call_4folder(folder):
    this is read by no version of Python
"""
EXECUTE_SCRIPT = """
import subprocess

py_interpreter = "/nowhere"

def run_with_gpu(first, second, gpu):
    found = [
        subprocess.run([py_interpreter, path], capture_output=True, text=True).stdout
        for path in (first, second)
    ]
    return found[0] == found[1], first.split("/")[-1]
"""
RIGHT = "import torch\n\n\ndef {name}(x):\n    return x / 2\n"
ANSWERS = {
    "honest": RIGHT,
    "wrong": RIGHT.replace("2", "3"),
    "broken": RIGHT.replace("return x / 2", "raise ValueError('never')"),
    "chatty": RIGHT + "\nprint('mine')\n",
}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone with an operator for each answer of its one model."""
    folder = tmp_path / "clone"
    for group in ("T", "G"):
        scripts, data = folder / f"EVAL/eval_{group}", folder / f"data/TritonBench_{group}_v1"
        models = folder / f"LLM_generated/Bench_{group}_plain"
        for each in (scripts, data, models):
            each.mkdir(parents=True)
        (scripts / "0_call_acc.py").write_text(CALL_SCRIPT)
        (scripts / "1_exe_acc.py").write_text(EXECUTE_SCRIPT)
        for name in ANSWERS:
            text = gold(name, RIGHT.format(name=name), f"{name}(torch.rand(3))")
            (data / f"{name}.py").write_text(text)
        rows = [
            {
                "file": f"{name}.py",
                "predict": code.format(name=name),
                "label": "",
                "instruction": "",
            }
            for name, code in ANSWERS.items()
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (models / "some_model.jsonl").write_text(lines)
        (models / "half_a_model.jsonl").write_text(lines.partition("\n")[0])
        statistics = json.dumps([{"file": row["file"]} for row in rows])
        (folder / f"data/TritonBench_{group}_v1.{'jsonl' if group == 'T' else 'json'}").write_text(
            statistics
        )
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of imported sets."""
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def tilewright(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_file_that_the_script_refuses_is_named(clone):
    found = dict(recorded_files(clone, "t"))

    with pytest.raises(ProblemError, match=r"half_a_model.jsonl: .* AssertionError rows"):
        read_predictions(clone, "t/half_a_model", found["t/half_a_model"])


def test_predictions_of_g_are_prepared_by_the_script(clone):
    path = clone / "LLM_generated/Bench_G_plain/some_model.jsonl"
    path.write_text(path.read_text().replace("def honest", "CONSTANT = 2\\ndef honest"))

    found = read_predictions(clone, "g/some_model", path)

    assert "CONSTANT" in path.read_text()
    assert found[0].code == RIGHT.format(name="honest")
    assert found[0].problem == "tritonbench/g/honest"


def test_a_script_of_another_version_is_named(clone):
    path = clone / "EVAL/eval_T/0_call_acc.py"
    path.write_text("pass\n")

    with pytest.raises(ProblemError, match=r"0_call_acc.py: it has no 'def call_4folder\('"):
        read_predictions(clone, "t/some_model", clone / "x.jsonl")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_all_steps_agree_and_name_the_one_difference(clone, tmp_path, capsys):
    """`test_recorded_programs_of_kernelbenchx_have_their_recorded_results` has fewer steps."""
    work, runs = tmp_path / "work", tmp_path / "runs"
    tilewright("problems", "import", "tritonbench", "--from", str(clone))
    assert main(["prepare", str(clone), str(work), "--groups", "t"]) == 0
    assert "half_a_model.jsonl: the benchmark's own script refuses it" in capsys.readouterr().out
    candidates = str(work / "candidates-t.jsonl")
    arguments = ["scripts", str(clone), str(work), "--groups", "t", "--device", "cpu"]
    assert main([*arguments, "--seconds", "0"]) == 3
    assert main([*arguments, "--workers", "2"]) == 0
    tilewright(
        *("bench", "tritonbench/t", "--candidates", candidates, "--protocol", "official,strict"),
        *("--set", "eval.timing.enabled=false", "--out", str(runs)),
    )
    capsys.readouterr()

    (run,) = runs.iterdir()
    assert main(["compare", str(clone), str(work), str(run), "--groups", "t"]) == 1

    shown = capsys.readouterr().out
    assert "| t/some_model | 4 | 75.00 % | 75.00 % | 50.00 % | 75.00 % | 50.00 % |" in shown
    assert "| t/some_model chatty.py | call | correct | prints_itself |" in shown
    assert "differences without a rule | 0 | 0 | yes" in shown
    assert (
        "t/some_model: call, execution | at most 2 points | 0.0 points and 25.0 points | NO"
        in shown
    )


@pytest.mark.slow
def test_a_file_that_never_ends_is_stopped_and_not_run_again(clone, tmp_path):
    for name in ANSWERS:
        (clone / f"data/TritonBench_T_v1/{name}.py").write_text(
            gold(name, RIGHT.format(name=name), "[None for _ in iter(int, 1)]")
        )
    work = tmp_path / "work"
    work.mkdir()
    arguments = ["scripts", str(clone), str(work), "--groups", "t", "--limit-s", "1"]

    assert main([*arguments, "--workers", "2"]) == 0

    found = read_outcomes(work)
    assert {file for _, file in found} == {f"{name}.py" for name in ANSWERS}
    assert all(STOPPED in item.error and not item.called for item in found.values())
    before = (work / "scripts.jsonl").read_text().strip()
    assert main(arguments) == 0
    assert (work / "scripts.jsonl").read_text().strip() == before


def evidence(
    *,
    called: bool = True,
    executed: bool = True,
    error: str = "",
    text: str = "",
    tests: str = "",
    gold_called: bool = True,
    **official: object,
) -> Evidence:
    script = Outcome("t/m", "half.py", called, executed, "", error, 1.0)
    whole = Outcome("t/gold", "half.py", gold_called, gold_called, "", "", 1.0)
    source = gold("half", RIGHT.format(name="half"), "half(1)")
    problem = problem_of(source, "tritonbench/t/half", "half.py", printed=True)
    summary = EvalSummary.model_validate({"protocol": "official", "verdict": "correct", **official})
    return Evidence(script, summary, problem, text, ast.parse(tests), whole)


CUDA_RULE = "cuda_in_candidate"
FRAME = '  File "half.py", line 3, in <module>'
UNKNOWN = "NameError: name 'math' is not defined"


@pytest.mark.parametrize(
    ("found", "rule"),
    [
        (evidence(verdict="unjudged", code="stateful_reference"), "no_verdict"),
        (evidence(verdict="rejected"), "check"),
        (evidence(verdict="failed", code="timeout"), "own_limit"),
        (
            evidence(verdict="failed", code="exception", reason=UNKNOWN, tests="import math"),
            "names_of_tests",
        ),
        (evidence(verdict="failed", code="exception", reason=UNKNOWN), None),
        (
            evidence(verdict="failed", code="exception", tests="try:\n    f()\nexcept E:\n    0"),
            "caught_by_tests",
        ),
        (evidence(called=False, executed=False, error=STOPPED), "script_limit"),
        (evidence(verdict="failed", code="crash"), "crash"),
        (evidence(verdict="failed", code="exception", reason=f"{NO_CUDA} enabled"), CUDA_RULE),
        (evidence(called=False, executed=False, gold_called=False), "gold_fails"),
        (
            evidence(called=False, executed=False, error=f"{FRAME}\nE", text="a\nb\nc"),
            "own_example",
        ),
        (evidence(called=False, executed=False, error=f"{FRAME}\nE", text="a\nb"), None),
        (evidence(called=False, executed=False, error=f"...\n{UNKNOWN}"), "other_names"),
        (evidence(called=False, executed=False, error="AssertionError"), None),
        (
            evidence(called=False, executed=False, error="AssertionError", tests="assert f()"),
            "assertion_in_tests",
        ),
        (evidence(executed=False, tests="print(f())"), "printed_text"),
        (evidence(executed=False), None),
    ],
)
def test_a_difference_has_a_rule_only_with_its_evidence(found, rule):
    assert not found.agrees
    named = find_rule(found)
    assert (named.name if named else None) == rule


def test_a_difference_without_a_rule_misses_the_bar():
    rows = [Compared("t/m", "half.py", evidence(executed=False), None)]

    (*_, unexplained) = bars(rows)

    assert rows[0].difference == UNEXPLAINED
    assert not unexplained.held


def test_accuracies_count_each_prediction_once():
    rows = [
        Compared("t/m", "a.py", evidence(), None),
        Compared("t/m", "b.py", evidence(executed=False, verdict="incorrect", code="values"), None),
        Compared("t/m", "c.py", evidence(verdict="unjudged"), None),
        Compared("t/n", "a.py", evidence(called=False, executed=False, verdict="failed"), None),
    ]

    first, second = accuracies(rows)

    assert (first.script_call, first.official_call) == (100, pytest.approx(200 / 3))
    assert (first.script_execute, first.official_execute) == (
        pytest.approx(200 / 3),
        pytest.approx(100 / 3),
    )
    assert (second.script_call, second.official_call) == (0, 0)


def test_both_protocols_may_refuse_for_different_reasons():
    strict = EvalSummary(protocol="strict", verdict="incorrect")
    found = Compared("t/m", "a.py", evidence(verdict="failed", code="exception"), strict)

    assert found.strict_difference == STOPS_EARLY


def test_recorded_programs_of_kernelbenchx_have_their_recorded_results(tmp_path, capsys):
    gold_file(tmp_path, "Math/half.py").parent.mkdir(parents=True)
    gold_file(tmp_path, "Math/half.py").write_text(gold("half", RIGHT, "half(1)"))
    failed, passed = {"call_ok": False, "exe_ok": False}, {"call_ok": True, "exe_ok": True}
    rows = [
        {
            "task_id": name,
            "from_round": "round_0",
            "to_round": "round_1",
            "before": failed,
            "after": passed,
            "before_code": "a",
            "after_code": "b",
        }
        for name in ("Math/half.py", "Old/half.py")
    ]
    path = tmp_path / RECORDS
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    first, second = recorded(tmp_path)

    assert "no gold file Old/half.py in this version" in capsys.readouterr().out
    assert first[0] == Prediction("x/round_0", "Math/half.py", "a")
    assert (first[1].called, second[1].called) == (False, True)
    assert second[0].problem == "kernelbenchx/Math/half"
    assert "half(1)" in read_tests(tmp_path, second[0])


def test_records_of_another_form_are_named(tmp_path):
    path = tmp_path / RECORDS
    path.parent.mkdir(parents=True)
    path.write_text('{"task_id": "Math/half.py"}\n')

    with pytest.raises(ProblemError, match=r"all_records.jsonl:1: it has another form: 'before'"):
        recorded(tmp_path)
