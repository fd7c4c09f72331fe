"""The command line with real evaluations: verdicts, explanations, interrupts, full disks."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilewright.cli import demo, doctor
from tilewright.cli.main import cli
from tilewright.records.run_folder import read_report

pytest.importorskip("torch")
pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("folder")]

COMMAND = [sys.executable, "-m", "tilewright.cli.main"]
QUICK = ["--set", "eval.timing.max_s=0.1", "--set", "eval.timing.min_blocks=4"]
UNTIMED = ["--set", "eval.timing.enabled=false"]

PROBLEM = """
import torch

ENTRY = "double"
CASES = [{"name": "even", "n": 8}, {"name": "odd", "n": 33}]
VARY = {"contents": ["scale"]}

def inputs(case, generator):
    return (torch.randn(4, case["n"], generator=generator),)

def reference(x):
    return torch.tanh(x) + x
"""
HONEST = "import torch\ndef double(x):\n    return torch.tanh(x).add_(x)\n"
CANDIDATES = {
    "honest": HONEST,
    "odd": (
        "import torch\ndef double(x):\n    y = torch.tanh(x) + x\n"
        "    if x.shape[1] % 2:\n        y[:, -1] = 0\n    return y\n"
    ),
    "nan": (
        "import torch\ndef double(x):\n    y = torch.tanh(x) + x\n"
        "    y[x.abs() > 60] = float('nan')\n    return y\n"
    ),
    "cached": (
        "import torch\nkept = {}\ndef double(x):\n"
        "    if x.shape not in kept:\n        kept[x.shape] = torch.tanh(x) + x\n"
        "    return kept[x.shape]\n"
    ),
    "raises": "import torch\ndef double(x):\n    raise KeyError('mine')\n",
    "overwrites": (
        "import torch\ndef double(x):\n    y = torch.tanh(x) + x\n    x.zero_()\n    return y\n"
    ),
    "broken": "def double(x:\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def folder(tmp_path, home, monkeypatch):
    """Work in a folder with a problem and candidates."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(home))
    (tmp_path / "double.py").write_text(PROBLEM)
    for name, text in CANDIDATES.items():
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, timeout=280, check=False, **options
    )


def judge(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return run("eval", f"{name}.py", "-p", "double.py", *words)


def only_run(parent: Path = Path("runs")) -> Path:
    (folder,) = parent.iterdir()
    return folder


def reproduced(run_folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the script where nothing of ours can be imported."""
    script = run_folder / "reproduce.py"
    block = "import sys; sys.modules['tilewright'] = None; sys.argv = sys.argv[1:];"
    code = f"{block} import runpy; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [sys.executable, "-c", code, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)


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
    assert judge(name, *UNTIMED).returncode == 1
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
        answer = run("eval", name, "-p", problem, "--out", f"out-{name}", *UNTIMED)
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
    assert judge("nan", *UNTIMED).returncode == 1
    made = only_run()
    answer = run("eval", "--from-report", str(made), "--out", "again")
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
        answer = judge("odd", "--reuse", *UNTIMED)
        assert answer.returncode == 1
    assert "answered from the store" in answer.stderr


def test_a_missing_required_layer_leaves_the_candidate_unjudged():
    answer = judge("honest", "--require-isolation", "moat", *UNTIMED)
    assert answer.returncode in (2, 4)
    assert "moat" in answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.fixture
def small_disk(folder):
    """Return a folder on a file system with space for settings but not for a report."""
    place = folder / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_loses_no_report(home, small_disk):
    answer = judge("odd", "--out", str(small_disk), *UNTIMED)
    assert answer.returncode == 2
    assert answer.stdout.startswith("incorrect  ")
    (line,) = [line for line in answer.stderr.splitlines() if "error:" in line]
    assert "no space left on device" in line
    rescued = Path(line.split("written to ")[1].split(" instead")[0])
    assert rescued.is_relative_to(home)
    assert read_report(rescued).verdict == "incorrect"


def test_a_read_only_disk_is_named_before_anything_is_judged(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    answer = judge("odd", "--out", str(small_disk))
    assert answer.returncode == 2
    assert answer.stdout == ""
    (line,) = answer.stderr.splitlines()
    assert "read-only file system; name another folder with --out" in line
    answer = run("problems", "new", "mine", "--dir", str(small_disk))
    assert answer.returncode == 2
    assert "cannot be written" in answer.stderr
    assert "Traceback" not in answer.stderr


def wait_for(path: Path, wanted: int, timeout_s: float = 200.0) -> None:
    deadline = time.monotonic() + timeout_s
    while len(list(path.glob("*/report.json"))) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def interruptible() -> None:
    """Take interrupts, also where whoever runs the tests ignores them, as a shell's `&` does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_watch_judges_again_at_each_save_until_interrupted(folder):
    words = ["eval", "honest.py", "-p", "double.py", "--watch", *UNTIMED]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*COMMAND, *words], **pipes, preexec_fn=interruptible) as process:
        try:
            wait_for(folder / "runs", 1)
            time.sleep(0.5)
            (folder / "honest.py").write_text(CANDIDATES["odd"])
            wait_for(folder / "runs", 2)
            time.sleep(0.5)
        finally:
            process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert out.startswith("correct  ")
    assert "\nincorrect  " in out
    assert "tilewright: broke: correct before, incorrect now\n" in err
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "tilewright: interrupted"


@pytest.mark.parametrize(
    "send",
    [os.kill, os.killpg],
    ids=["to the command", "to all, as a terminal does"],
)
def test_an_interrupt_leaves_neither_a_process_nor_a_run_folder(folder, send):
    (folder / "slow.py").write_text(
        "import time\ndef double(x):\n    time.sleep(15)\n    return x\n"
    )
    words = ["eval", "slow.py", "-p", "double.py", "-v"]
    process = subprocess.Popen(
        [*COMMAND, *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "correctness" in line:
            break
    send(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    left = subprocess.run(
        ["pgrep", "-s", str(process.pid)], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""
    assert list((folder / "runs").iterdir()) == []


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
    answer = run("eval", str(demo.DEMO / "forged_result.py"), "-p", "softmax", *UNTIMED)
    assert answer.returncode == 1, answer.stderr
    made = only_run()
    last = run("explain", str(made)).stderr.splitlines()[-1]
    assert last.endswith(f"next: tilewright eval --from-report {made}")


def test_every_demo_file_has_a_header():
    found = demo.exhibits(demo.DEMO)
    assert len(found) >= 8
    assert {"correct", "incorrect"} <= {verdict for item in found for verdict in item.expect}


def test_doctor_calibrates_and_reports_every_item(folder, monkeypatch):
    monkeypatch.setattr(doctor, "AA_RUNS", 1)
    monkeypatch.setattr(doctor, "CALIBRATION_PROBLEMS", ("add_relu",))
    words = ["doctor", "--json", "--calibrate", "--runs", "2", *QUICK]
    answer = CliRunner().invoke(cli, [*words, "--set", f"home={folder / 'home'}"])
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    items = {item["name"]: item for item in document["items"]}
    assert items["judging"]["ok"]
    assert "isolation: seccomp" in items
    assert items["calibration"]["ok"]
    # Three cases twice; a long or memory-bound one has four to eight replicates, each a sample.
    assert 6 <= sum(document["calibration"]["samples"]) <= 8 * 6
    assert (folder / "home" / "calibration.json").is_file()
    # On a busy machine the limit of time ends a case before its planned replicates.
    assert 1 <= document["noise"]["runs"] <= 8
    assert 0 <= document["noise"]["median"] <= document["noise"]["worst"]
    worst = f"{math.expm1(document['noise']['worst']):.1%}"
    assert worst in items["low noise"]["detail"], items["low noise"]


def test_a_generated_problem_is_judged_unchanged():
    assert run("problems", "new", "mine").returncode == 0
    answer = run("eval", "mine/candidate.py", "-p", "mine", *UNTIMED)
    assert answer.returncode == 0, answer.stdout
