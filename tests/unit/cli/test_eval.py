"""The command line with a scripted evaluator: flags, exit codes, output, files."""

from __future__ import annotations

import json
import os
import sys

import pytest
from click.testing import CliRunner

from tests import sample_reports as reports
from tilewright import __version__
from tilewright.cli import eval as eval_verb
from tilewright.cli.eval import parse_bar
from tilewright.cli.main import VERBS, cli
from tilewright.config import leaves, load
from tilewright.errors import ConfigError, InfrastructureError, PluginError, ProblemError
from tilewright.records import EvalReport
from tilewright.records.run_folder import create_run, read_report, write_report


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs the command line in an empty folder, with a home of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILEWRIGHT_HOME", str(tmp_path / "home"))
    (tmp_path / "fast.py").write_text(reports.SOURCE)

    def run(*words: str, stdin: str | bytes | None = None):
        return CliRunner().invoke(cli, list(words), input=stdin)

    return run


@pytest.fixture
def judged(monkeypatch):
    """Return a function that sets what judging answers, and gives what was asked."""
    asked = []

    def answer(report_or_error):
        def judge(request, settings, progress=None):
            asked.append((request, settings))
            progress("stage", {"stage": "prepare"})
            if isinstance(report_or_error, BaseException):
                raise report_or_error
            return report_or_error

        monkeypatch.setattr("tilewright.api.evaluate_request", judge)
        return asked

    return answer


def refused(result, code: int, *words: str) -> None:
    """Check that there is one clear line, nothing on stdout, and no traceback."""
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[-1].startswith("tilewright: error: ")
    assert len([line for line in lines if "error" in line]) == 1
    assert "Traceback" not in result.output
    for word in words:
        assert word in lines[-1]
    assert result.exit_code == code


def test_version_help_and_verbs(run):
    assert run("--version").stdout == f"tilewright {__version__}\n"
    for words in ([], ["--help"]):
        result = run(*words)
        assert result.exit_code == 0
        for verb in VERBS:
            assert f"\n  {verb}" in result.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(run, verb):
    assert run(verb, "--help").exit_code == 0


def test_flags_that_stand_for_a_setting_name_that_setting():
    paths = {leaf.path for leaf in leaves()}
    named = {
        "baselines": "eval.baselines",
        "protocol": "eval.protocol",
        "device": "eval.device",
        "require_isolation": "eval.require_isolation",
        "reuse": "eval.reuse",
        "out": "runs",
    }
    options = {option.name: option for option in eval_verb.command.params}
    for name, path in named.items():
        assert path in paths
        assert f"({path})" in options[name].help


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nope"], 2, "no such command 'nope'"),
        (["eval", "--nope"], 2, "no such option"),
        (["eval"], 2, "name a candidate"),
        (["eval", "fast.py"], 2, "name a problem"),
        (["eval", "missing.py", "-p", "add_relu"], 2, "missing.py: no such file"),
        (["eval", "fast.py", "-p", "missing"], 3, "no problem 'missing'"),
        (["eval", "fast.py", "-p", "fast.py"], 3, "not a problem"),
        (["eval", "fast.py", "-p", "add_relu", "--language", "zig"], 2, "'zig'"),
        (
            ["eval", "fast.py", "-p", "add_relu", "--protocol", "x"],
            2,
            "expected strict or official",
        ),
        (["eval", "fast.py", "-p", "add_relu", "--device", "tpu"], 2, "known: cpu, cuda"),
        (["eval", "fast.py", "-p", "add_relu", "--device", "cuda"], 4, "unjudged: no device"),
        (["eval", "fast.py", "-p", "add_relu", "--set", "eval.prot=1"], 2, "no such setting"),
        (["eval", "fast.py", "-p", "add_relu", "--set", "eval"], 2, "write path=value"),
        (["eval", "fast.py", "-p", "add_relu", "--config", "no.yaml"], 2, "no.yaml"),
        (["eval", "fast.py", "-p", "add_relu", "--baseline", "no.py"], 2, "no.py: no such file"),
        (["eval", "fast.py", "-p", "add_relu", "--python-path", "no"], 2, "no such folder"),
        (["eval", "fast.py", "-p", "add_relu", "--min-speedup", "faster"], 2, "write X"),
        (["eval", "--from-report", "no"], 6, "no such run or report"),
        (["explain", "no"], 6, "no such run or report"),
        (["problems", "show", "missing"], 3, "no problem 'missing'"),
        (["problems", "new", "two words"], 2, "cannot be the name"),
        (["problems", "new", "class"], 2, "cannot be the name"),
    ],
)
def test_bad_input_is_one_line(run, words, code, says, tmp_path):
    refused(run(*words), code, says)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--from-report", "x"],
        ["--watch", "--json"],
        ["--min-speedup", "speedup>=1", "--protocol", "official"],
        ["--min-speedup", "speedup>=1", "--set", "eval.timing.enabled=false"],
        ["--protocol", "strict", "--set", "eval.protocol=official"],
    ],
)
def test_contradictory_flags_are_refused(run, words):
    """`refused` fails unless one error line names the first flag, with exit code 2."""
    both = [word for word in words if word.startswith("--")][:2]
    refused(run("eval", "fast.py", "-p", "add_relu", *words), 2, both[0])


def test_a_replay_takes_nothing_else(run):
    """`refused` fails unless one error line names the contradiction, with exit code 2."""
    for words in (["-p", "add_relu"], ["--reuse"], ["--watch"], ["--set", "eval.device=cpu"]):
        refused(run("eval", "--from-report", "x", *words), 2, "contradict each other", words[0][:5])
    refused(run("eval", "-", "-p", "add_relu", "--watch"), 2, "never saved again")


def test_two_baselines_of_one_name_are_refused(run, tmp_path):
    """`refused` fails unless one error line quotes the name, with exit code 2."""
    other = tmp_path / "other" / "fast.py"
    other.parent.mkdir()
    other.write_text(reports.SOURCE)
    words = ["--baseline", "fast.py", "--baseline", str(other)]
    refused(run("eval", "fast.py", "-p", "add_relu", *words), 2, "'fast'")


def test_a_candidate_that_is_not_utf8_is_refused(run, tmp_path):
    """`refused` fails unless one error line says so, with exit code 2."""
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    refused(run("eval", "bytes.py", "-p", "add_relu"), 2, "not UTF-8 text")
    refused(run("eval", "-", "-p", "add_relu", stdin=b"\xff\xfe\x00"), 2, "not UTF-8 text")


@pytest.mark.parametrize(
    ("name", "code"),
    [("correct", 0), ("incorrect", 1), ("failed", 1), ("rejected", 1), ("unjudged", 4)],
)
def test_verdicts_have_exit_codes_and_are_written(run, judged, tmp_path, name, code):
    report = getattr(reports, name)()
    judged(report)
    result = run("eval", "fast.py", "-p", "add_relu")
    assert result.exit_code == code
    assert result.stdout.startswith(f"{name}  bundled/add_relu by fast.py (torch)")
    (folder,) = (tmp_path / "runs").iterdir()
    assert read_report(folder) == report
    last = result.stderr.splitlines()[-1]
    assert (
        last == f"tilewright: run runs/{folder.name}; next: tilewright explain runs/{folder.name}"
    )


def test_json_is_one_document_whose_top_is_the_answer(run, judged):
    judged(reports.correct())
    result = run("eval", "fast.py", "-p", "add_relu", "--json")
    document = json.loads(result.stdout)
    keys = ("verdict", "speedup", "speedup_low", "speedup_high")
    assert [document[key] for key in keys] == ["correct", 1.42, 1.36, 1.47]
    assert EvalReport.from_json(result.stdout) == reports.correct()


def test_flags_reach_the_request_and_the_run_folder(run, judged, tmp_path):
    asked = judged(reports.correct())
    words = ["--baseline", "eager", "--baseline", "base.py", "--require-isolation", "seccomp"]
    words += ["--set", "eval.timing.max_s=0.25", "--out", "kept", "--protocol", "official"]
    (tmp_path / "base.py").write_text(reports.SOURCE)
    assert run("eval", "fast.py", "-p", "add_relu", *words).exit_code == 0
    request, settings = asked[0]
    assert [item.name for item in request.baselines] == ["eager", "base"]
    assert request.require_isolation == ("seccomp",)
    assert request.protocol == "official"
    assert request.timing.max_s == 0.25
    (folder,) = (tmp_path / "kept").iterdir()
    assert load(folder / "run.yaml", environ={}) == settings


@pytest.mark.parametrize(
    ("bar", "code"),
    [
        ("1.36", 0),
        ("1.37", 1),
        (">1.36", 1),
        (">=1.36", 0),
        ("speedup>=1.05", 0),
        ("speedup>=1.36", 0),
        ("speedup>1.36", 1),
        ("speedup >= 1.4", 1),
    ],
)
def test_min_speedup_is_compared_with_the_lower_end(run, judged, bar, code):
    judged(reports.correct())
    result = run("eval", "fast.py", "-p", "add_relu", "--min-speedup", bar)
    assert result.exit_code == code
    assert ("is missed" in result.stderr) == (code == 1)


@pytest.mark.reads_settings
def test_min_speedup_is_missed_without_a_speedup_and_never_hides_unjudged(run, judged):
    judged(reports.report())
    assert run("eval", "fast.py", "-p", "add_relu", "--min-speedup", "speedup>=0.1").exit_code == 1
    judged(reports.unjudged())
    assert run("eval", "fast.py", "-p", "add_relu", "--min-speedup", "speedup>=0.1").exit_code == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "speedup",
        "speedup>=",
        "speedup=1",
        "speedup>=-1",
        "speedup>=0",
        "fast>=1",
        ">=",
        "speedup 1",
    ],
)
def test_an_invalid_min_speedup_is_refused(text):
    with pytest.raises(ConfigError):
        parse_bar(text)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProblemError("add_relu: running the reference: ValueError: boom"), 3),
        (InfrastructureError("a bug: Traceback (most recent call last):\n  x\nKeyError: 1"), 4),
        (PluginError("no plug-in\nof that name"), 2),
    ],
)
def test_errors_are_one_line_and_leave_no_run_folder(run, judged, tmp_path, error, code):
    judged(error)
    refused(run("eval", "fast.py", "-p", "add_relu"), code)
    assert list((tmp_path / "runs").iterdir()) == []


def test_an_interrupt_ends_with_130(run, judged, tmp_path):
    judged(KeyboardInterrupt())
    result = run("eval", "fast.py", "-p", "add_relu")
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "tilewright: interrupted"
    assert list((tmp_path / "runs").iterdir()) == []


def test_an_unexpected_exception_is_not_hidden(run, judged):
    judged(ZeroDivisionError("ours"))
    assert isinstance(run("eval", "fast.py", "-p", "add_relu").exception, ZeroDivisionError)


def test_a_report_that_cannot_be_written_is_shown_and_rescued(run, judged, tmp_path, monkeypatch):
    judged(reports.correct())
    writes = []

    def full(folder, report):
        writes.append(folder)
        if len(writes) == 1:
            raise ConfigError(f"{folder}/report.json: cannot be written: No space left on device")
        return write_report(folder, report)

    monkeypatch.setattr("tilewright.records.run_folder.write_report", full)
    result = run("eval", "fast.py", "-p", "add_relu")
    assert result.stdout.startswith("correct  ")
    assert result.exit_code == 2
    assert "No space left on device; the report was written to" in result.stderr
    (rescued,) = (tmp_path / "home" / "rescued").iterdir()
    assert read_report(rescued) == reports.correct()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere: see the read-only disk")
def test_a_read_only_folder_is_named(run, tmp_path):
    """`refused` fails unless one error line names the folder, with exit code 2."""
    (tmp_path / "shut").mkdir(mode=0o500)
    refused(run("eval", "fast.py", "-p", "add_relu", "--out", "shut"), 2, "shut", "--out")
    refused(run("problems", "new", "mine", "--dir", "shut"), 2, "shut", "cannot be written")


def test_a_folder_that_is_a_file_is_named(run, tmp_path):
    """`refused` fails unless one error line names the file, with exit code 2."""
    refused(run("eval", "fast.py", "-p", "add_relu", "--out", "fast.py"), 2, "fast.py", "--out")
    refused(run("problems", "new", "mine", "--dir", "fast.py"), 2, "cannot be written")
    words = ["--set", f"home={tmp_path / 'fast.py' / 'home'}"]
    refused(run("eval", "fast.py", "-p", "add_relu", *words), 2, "--set home=DIR")


def test_a_replay_asks_again_under_the_recorded_seed(run, judged, tmp_path):
    recorded = reports.incorrect().model_copy(update={"evaluator": "0.0.1"})
    folder = create_run(tmp_path / "old", "")
    write_report(folder, recorded)
    asked = judged(reports.incorrect())
    result = run("eval", "--from-report", str(folder), "--set", "runs=new")
    assert result.exit_code == 1
    assert asked[0][0] == recorded.request.model_copy(update={"seed": recorded.seed})
    assert "recorded by tilewright 0.0.1" in result.stderr
    assert "the recorded verdict is incorrect" in result.stderr
    assert len(list((tmp_path / "new").iterdir())) == 1


@pytest.mark.parametrize("verb", [["eval", "--from-report"], ["explain"]])
def test_damaged_and_newer_records_are_refused_by_name(run, tmp_path, verb):
    """`refused` fails unless one error line gives the reason, with exit code 6."""
    path = tmp_path / "report.json"
    text = reports.correct().to_json()
    path.write_text(text[: len(text) // 2])
    refused(run(*verb, str(path)), 6, "damaged")
    path.write_text(text.replace('"schema_version":2', '"schema_version":9'))
    refused(run(*verb, str(path)), 6, "schema version 9", "upgrade")
    path.write_text("[]")
    refused(run(*verb, str(path)), 6)


def test_a_reused_report_is_announced(run, monkeypatch):
    monkeypatch.setattr("tilewright.api.evaluate_request", lambda *_: reports.correct())
    result = run("eval", "fast.py", "-p", "add_relu", "--reuse")
    assert result.exit_code == 0
    assert "answered from the store" in result.stderr


def test_explain_lists_every_check_and_writes_a_script(run, tmp_path):
    folder = create_run(tmp_path / "runs", "")
    write_report(folder, reports.incorrect())
    result = run("explain", str(folder), "--json")
    document = json.loads(result.stdout)
    assert {"unused_kernels", "inputs"} <= {check["name"] for check in document["checks"]}
    assert document["report"]["verdict"] == "incorrect"
    assert (folder / "reproduce.py").is_file()
    text = run("explain", str(folder)).stdout
    assert f"python{folder}/reproduce.py" in "".join(text.split())
    write_report(folder, reports.rejected())
    document = json.loads(run("explain", str(folder), "--json").stdout)
    unused = next(check for check in document["checks"] if check["name"] == "unused_kernels")
    assert unused["findings"][0]["evidence"] == {"calls": 3}
    assert document["reproducer"] is None
    refused(run("explain", str(tmp_path / "runs")), 6, "holds several", folder.name)


def test_problems_list_show_and_new(run, tmp_path):
    listed = json.loads(run("problems", "list", "--json").stdout)
    assert len(listed) >= 12
    assert "add_relu" in run("problems", "list").stdout
    shown = run("problems", "show", "softmax")
    assert "def reference(x):" in shown.stdout
    assert json.loads(run("problems", "show", "mlp", "--json").stdout)["kind"] == "module"
    assert run("problems", "new", "mine").stdout.split() == ["mine/problem.py", "mine/candidate.py"]
    assert run("problems", "show", "mine").exit_code == 0
    before = (tmp_path / "mine" / "problem.py").read_bytes()
    refused(run("problems", "new", "mine"), 2, "nothing was overwritten")
    assert (tmp_path / "mine" / "problem.py").read_bytes() == before


def test_on_other_systems_one_line_lists_the_usable_commands(run, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    result = run("problems", "list")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[0].startswith("tilewright: this is darwin: explain, problems")
    refused(run("eval", "fast.py", "-p", "add_relu"), 4, "judging needs Linux")


def test_without_torch_judging_names_the_package_to_install(run, monkeypatch):
    """`refused` fails unless one error line names the package, with exit code 4."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    refused(run("eval", "fast.py", "-p", "add_relu"), 4, "pip install 'tilewright[judge]'")
