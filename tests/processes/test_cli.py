"""The command line with real evaluations: verdicts, explanations, interrupts, full disks."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.processes.command_line import (
    HONEST,
    PROBLEM,
    QUICK,
    UNTIMED,
    WARM,
    folder,
    home,
    judge,
    only_run,
    run,
)
from tilewright.cli import demo, doctor
from tilewright.cli.main import cli
from tilewright.records.run_folder import read_report

__all__ = ["folder", "home"]
pytest.importorskip("torch")
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("folder"), pytest.mark.slow]


def reproduced(run_folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script where nothing of ours can be imported."""
    script = run_folder / "reproduce.py"
    block = "import sys; sys.modules['tilewright'] = None; sys.argv = sys.argv[1:];"
    code = f"{block} import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.timed
def test_an_honest_candidate_is_correct_on_the_command_line():
    answer = judge("honest", "--json", *QUICK)
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["verdict"] == "correct"
    assert document["speedup_low"] <= document["speedup"] <= document["speedup_high"]
    made = only_run()
    assert sorted(path.name for path in made.iterdir()) == [
        "candidate",
        "environment.json",
        "report.json",
        "run.yaml",
    ]
    last = answer.stderr.splitlines()[-1]
    assert last == f"tilewright: run {made}; next: tilewright explain {made}"
    missed = judge("honest", "--min-speedup", "speedup>=100", *QUICK)
    assert missed.returncode == 1
    assert "is missed: the lower end of the interval is" in missed.stderr


@pytest.mark.parametrize(
    ("name", "alone", "says"),
    [
        ("odd", True, "elements are wrong"),
        ("nan", True, "got nan"),
        ("cached", False, "elements are wrong"),
        ("overwrites", True, "it overwrote input 0"),
        ("raises", True, "KeyError: 'mine'"),
    ],
)
def test_a_failure_is_explained_and_reproduced_with_plain_torch(name, alone, says):
    assert judge(name, *WARM).returncode == 1
    made = only_run()
    answer = run("explain", str(made))
    assert answer.returncode == 0, answer.stderr
    assert f"python {made}/reproduce.py" in answer.stdout
    assert answer.stderr.splitlines()[-1].endswith(f"next: python {made}/reproduce.py")
    again = reproduced(made)
    assert again.returncode == 1, again.stderr
    assert says in again.stdout + again.stderr
    if name != "raises":
        assert again.stdout.splitlines()[-1] == "Reproduced."
    assert ("All calls" in again.stdout and "called\n" in again.stdout) == (not alone)
    report = read_report(made)
    message = getattr(report.outcome, "message", "")
    if name in ("odd", "nan", "cached"):
        assert message in again.stdout


def test_a_failure_in_cpp_and_in_a_module_is_reproduced():
    wrong = {
        "bad.cpp": (
            "softmax",
            '#include "tilewright.h"\nextern "C" int softmax(const tw_tensor* in, int n_in, '
            "tw_tensor* out, int n_out) { ((float*)out[0].data)[0] = 7; return 0; }\n",
        ),
        "bad.py": (
            "mlp",
            "import torch.nn as nn, torch.nn.functional as F\nclass ModelNew(nn.Module):\n"
            "    def __init__(self, features, hidden):\n        super().__init__()\n"
            "        self.a = nn.Linear(features, hidden)\n"
            "        self.b = nn.Linear(hidden, features)\n"
            "        self.kept = self.a.weight.detach().clone()\n"
            "    def forward(self, x):\n"
            "        return self.b(F.gelu(F.linear(x, self.kept, self.a.bias)))\n",
        ),
    }
    for name, (problem, text) in wrong.items():
        Path(name).write_text(text)
        answer = run("eval", name, "-p", problem, "--out", f"out-{name}", *WARM)
        assert answer.returncode == 1, answer.stderr
        made = only_run(Path(f"out-{name}"))
        assert run("explain", str(made)).returncode == 0
        again = reproduced(made)
        assert again.returncode == 1, again.stderr
        outcome = read_report(made).outcome
        assert getattr(outcome, "message", "?") in again.stdout
        if name == "bad.py":
            assert getattr(outcome, "kind", "") == "weights"


def test_a_replay_draws_the_same_inputs_and_judges_again():
    assert judge("nan", *WARM).returncode == 1
    made = only_run()
    answer = run("eval", "--from-report", str(made), "--out", "again", "--host")
    assert answer.returncode == 1, answer.stderr
    first, second = read_report(made), read_report(only_run(Path("again")))
    assert second.seed == first.seed
    assert [item.seed for item in second.cases] == [item.seed for item in first.cases]
    assert second.outcome == first.outcome


def test_bad_candidates_and_problems_have_their_exit_codes():
    answer = judge("broken")
    assert answer.returncode == 1
    assert answer.stdout.startswith("failed  ")
    assert "syntax_error" in answer.stdout
    Path("crash.py").write_text(PROBLEM.replace("torch.tanh(x)", "torch.nope(x)"))
    answer = run("eval", "honest.py", "-p", "crash.py")
    assert answer.returncode == 3
    assert answer.stdout == ""
    (line,) = [line for line in answer.stderr.splitlines() if "error:" in line]
    assert "no attribute 'nope'" in line
    assert "Traceback" not in answer.stderr
    answer = run("eval", "-", "-p", "double.py", "--json", *UNTIMED, input=HONEST)
    assert json.loads(answer.stdout)["verdict"] == "correct"


def test_repeated_work_is_answered_from_the_report_cache():
    for _ in range(2):
        answer = judge("odd", "--reuse", *WARM)
        assert answer.returncode == 1
    assert "answered from the store" in answer.stderr


def test_a_missing_required_layer_leaves_the_candidate_unjudged():
    answer = judge("honest", "--require-isolation", "moat", *UNTIMED)
    assert answer.returncode in (2, 4)
    assert "moat" in answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.timed
def test_demo_verdicts_are_those_that_the_headers_state(folder, monkeypatch):
    exhibits = folder / "exhibits"
    exhibits.mkdir()
    names = ("honest_workspace_reuse.py", "softmax_without_max.py")
    for name in names:
        (exhibits / name).write_bytes((demo.DEMO / name).read_bytes())
    monkeypatch.setattr(demo, "DEMO", exhibits)
    answer = CliRunner().invoke(cli, ["demo", *QUICK])
    assert answer.exit_code == 0, answer.output
    assert "honest_workspace_reuse  moments  correct" in answer.stdout
    assert answer.stderr.startswith("tilewright: 2 candidates: honest, wrong and cheating ones")
    assert "2 of 2 verdicts are as expected" in answer.stderr
    made = only_run()
    assert answer.stderr.splitlines()[-1].endswith(f"tilewright explain {made}/softmax_without_max")
    assert read_report(made / "softmax_without_max").verdict == "incorrect"
    lie = (exhibits / names[1]).read_text().replace("expect: incorrect", "expect: correct")
    (exhibits / names[1]).write_text(lie)
    (exhibits / names[0]).unlink()
    answer = CliRunner().invoke(cli, ["demo", "--json", *QUICK])
    assert answer.exit_code == 1
    assert json.loads(answer.stdout)[0]["as_expected"] is False


def test_the_script_of_a_forgery_is_not_the_next_command():
    answer = run("eval", str(demo.DEMO / "forged_result.py"), "-p", "softmax", *WARM)
    assert answer.returncode == 1, answer.stderr
    made = only_run()
    last = run("explain", str(made)).stderr.splitlines()[-1]
    assert last.endswith(f"next: tilewright eval --from-report {made}")


def test_every_demo_file_has_a_header():
    found = demo.exhibits(demo.DEMO)
    assert len(found) >= 8
    assert {"correct", "incorrect"} <= {verdict for item in found for verdict in item.expect}


@pytest.mark.timed
def test_doctor_calibrates_and_reports_every_item(folder, monkeypatch):
    monkeypatch.setattr(doctor, "AA_RUNS", 1)
    monkeypatch.setattr(doctor, "CALIBRATION_PROBLEMS", ("add_relu",))
    # Blocks are counted, so that no limit of time ends a case early on a busy machine.
    plan = ("min_blocks=4", "max_blocks=4", "max_s=60", "timed_cases=1")
    steady = [word for part in plan for word in ("--set", f"eval.timing.{part}")]
    words = ["doctor", "--json", "--calibrate", "--runs", "2", *steady]
    answer = CliRunner().invoke(cli, [*words, "--set", f"home={folder / 'home'}"])
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    items = {item["name"]: item for item in document["items"]}
    assert items["judging"]["ok"]
    assert "isolation: seccomp" in items
    assert items["calibration"]["ok"]
    # One case twice; a long or memory-bound one has four to eight replicates, each a sample.
    assert 2 <= sum(document["calibration"]["samples"]) <= 8 * 2
    assert (folder / "home" / "calibration.json").is_file()
    assert 1 <= document["noise"]["runs"] <= 8
    assert 0 <= document["noise"]["median"] <= document["noise"]["worst"]
    worst = f"{math.expm1(document['noise']['worst']):.1%}"
    assert worst in items["low noise"]["detail"], items["low noise"]


def test_a_generated_problem_is_judged_unchanged():
    assert run("problems", "new", "mine").returncode == 0
    answer = run("eval", "mine/candidate.py", "-p", "mine", *WARM)
    assert answer.returncode == 0, answer.stdout
