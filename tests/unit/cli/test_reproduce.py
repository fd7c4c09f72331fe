"""The reproduction script: it has the judge's inputs, and is made of the judge's code."""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import random
import re
import runpy
import sys
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tests import sample_reports as reports
from tests.unit.evaluator.timing.test_blocks import Scripted, steady
from tests.unit.problems.sets.test_gold_file import gold
from tilewright.cli.main import cli
from tilewright.cli.reproduce import (
    PACKAGE,
    Slots,
    failing_case,
    inlined,
    plan_of,
    reproducer,
)
from tilewright.evaluator.judge import inputs, renewed_inputs
from tilewright.evaluator.judge import reference as refs
from tilewright.evaluator.pipeline.timed_variations import unchecked_variations
from tilewright.evaluator.seeds import derive
from tilewright.evaluator.timing.calibration import CLASSES, Calibration
from tilewright.evaluator.timing.rounds import time_cases
from tilewright.languages.python_template import quoted
from tilewright.problems.loader import bundled_names, find_problem
from tilewright.problems.sets.gold_file import problem_of
from tilewright.records import (
    Candidate,
    EvalReport,
    Failed,
    Incorrect,
    Problem,
    SourceFile,
    TimingPlan,
)
from tilewright.records.run_folder import create_run, write_report

torch = pytest.importorskip("torch")


IN_PLACE = gold(
    "act",
    "def act(x, slope=0.1, *, inplace=False):\n"
    "    return torch.nn.functional.leaky_relu(x, slope, inplace=inplace)\n",
    "act(torch.randn(50), inplace=True)",
)
GOLDEN = problem_of(IN_PLACE, "tritonbench/t/act", "act.py")


def wrong(name: str | Problem, language: str = "torch", **changes) -> EvalReport:
    """Return a report of a problem in which the last of several samples was wrong."""
    problem = find_problem(name) if isinstance(name, str) else name
    path = "candidate.cpp" if language == "cpp" else "candidate.py"
    text = 'extern "C" int f() { return 1; }' if language == "cpp" else "def f(*args):\n    pass\n"
    candidate = Candidate(
        language=language, files=(SourceFile(path=path, text=text),), entry=problem.entry
    )
    variation = problem.input_variations or ("nominal", "scale", "heavy_tail", "edge_values")
    pairs = [(case.name, each) for case in problem.cases[:1] for each in variation]
    cases = [
        reports.case(case, each, seed=str(derive(reports.SEED, "inputs", case, each, 0)))
        for case, each in pairs
    ]
    cases[-1] = cases[-1].model_copy(update={"result": "fail", "error_over_tolerance": None})
    outcome = Incorrect(kind="values", case="x", message="wrong")
    request = reports.request(problem=problem, candidate=candidate, **changes)
    return reports.report(outcome, cases=tuple(cases), request=request)


def globals_of(report: EvalReport, tmp_path):
    script, why_none = reproducer(report)
    assert why_none == ""
    path = tmp_path / "reproduce.py"
    path.write_text(script, encoding="utf-8")
    return runpy.run_path(str(path), run_name="reproduce")


@pytest.fixture(autouse=True)
def leave_no_module():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("tilewright_problem", "candidate")):
            del sys.modules[name]


@pytest.mark.parametrize("name", [*bundled_names(), GOLDEN])
def test_the_script_has_the_inputs_and_expected_outputs_of_the_judge(name, tmp_path):
    from tilewright.evaluator.judge import inputs, nominal_errors, reference, weights

    report = wrong(name)
    made = globals_of(report, tmp_path)
    problem = made["Problem"]()
    source = report.request.problem
    fields = {
        "problem_kind": source.kind,
        "mode": source.mode,
        "grads": list(source.grads),
        "keywords": list(source.keyword_args),
        "init_seed": made["INIT_SEED"],
    }
    judge = reference.load(source.source.text, fields)
    if judge.model is not None:
        seed = made["WEIGHTS_SEED"]
        fresh, again = weights.resample(judge.model, seed), made["resample"](problem.function, seed)
        assert all(torch.equal(fresh[key], again[key]) for key in fresh)
        judge.model.load_state_dict(fresh, strict=False)
        problem.function.load_state_dict(again, strict=False)
    errors = nominal_errors.NominalErrors()
    for call in made["CALLS"]:
        if call.get("renewed"):
            # `test_inputs_of_timed_calls_are_those_of_the_judge` compares these.
            continue
        args, grad_outputs, _ = problem.inputs(call)
        sample = inputs.make_sample(
            judge,
            call["params"],
            call["variation"],
            call["seed"],
            call["forward_seed"],
            double=True,
        )
        if sample.skipped:
            continue
        theirs = made["tensors_in"]([sample.arguments(), sample.grad_outputs()])
        ours = made["tensors_in"]([args, grad_outputs])
        assert len(theirs) == len(ours)
        assert all(torch.equal(a, b) for a, b in zip(theirs, ours, strict=True))
        if call["variation"] == "nominal":
            errors.note(sample.expected)
        else:
            sample.expected = errors.floored(sample.expected)
        expected = problem.expected_of(call, args, grad_outputs)
        for a, b in zip(sample.expected, expected, strict=True):
            assert torch.equal(a.value, b.value)
            assert (a.oracle is None) == (b.oracle is None)
            assert a.reference_error == b.reference_error
        assert problem.overwrites == sample.after.overwrites == ({0} if name is GOLDEN else set())


@pytest.mark.parametrize("language", ["torch", "triton", "cpp"])
def test_the_script_imports_no_tilewright_and_defines_no_name_twice(language):
    script, _ = reproducer(wrong("softmax", language))
    tree = ast.parse(script)
    names = Counter(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []
    modules = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    heads = {module.partition(".")[0] for module in modules}
    assert heads <= set(sys.stdlib_module_names) | {"torch", "triton", "numpy"}
    assert ("tilewright/runner/loaders/c_abi.py" in script) == (language == "cpp")
    assert ("TRITON_INTERPRET" in script.split("PROBLEM")[0]) == (language == "triton")


@pytest.mark.parametrize("language", ["torch", "triton", "cpp"])
def test_the_script_defines_what_its_copied_modules_import_from_tilewright(language):
    script, _ = reproducer(wrong("softmax", language))
    body = ast.parse(script).body
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        defined |= {target.id for target in targets if isinstance(target, ast.Name)}
    paths = re.findall(r"^# ---- tilewright/(\S+) ----$", script, re.MULTILINE)
    assert "evaluator/judge/comparison.py" in paths
    for path in paths:
        for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tilewright"):
                assert {alias.name for alias in node.names} <= defined, path


def test_copied_modules_lose_only_their_header():
    text = inlined("evaluator/judge/weights.py")
    assert "def resample(" in text
    assert "import torch" not in text
    assert "__future__" not in text
    assert not text.startswith('"""')


@pytest.mark.parametrize(
    "text",
    ["", "x = 1\n", 'a = """b"""\n', "ends in \\", 'ends in "', "\r\n", "\x00\x0b", "caf\xe9 \\n"],
)
def test_sources_are_quoted_exactly(text):
    assert ast.literal_eval(quoted(text)) == text


def test_a_docstring_stays_readable():
    assert quoted('"""A problem."""\n') == "r'''\"\"\"A problem.\"\"\"\n'''"


def test_the_first_failing_sample_is_the_last_call():
    report = wrong("add_relu")
    plan = plan_of(report)
    assert plan.failing == len(plan.calls) - 1 == plan.compared_from
    assert failing_case(report) is report.cases[-1]
    overwrote = report.cases[0].model_copy(update={"detail": "overwrote ['input 0']"})
    report = report.model_copy(update={"cases": (overwrote, *report.cases[1:])})
    assert plan_of(report).failing == 0


def test_hidden_sizes_are_reproduced():
    report = wrong("add_relu")
    seed = str(derive(reports.SEED, "inputs", "hidden 2", "nominal", 0))
    hidden = reports.case("hidden 2", result="fail", seed=seed)
    plan = plan_of(report.model_copy(update={"cases": (hidden,)}))
    assert set(plan.calls[0].params) == {"rows", "cols"}


def test_a_candidate_that_failed_without_an_answer_gets_the_remaining_calls():
    outcome = Failed(stage="correctness", reason="crash", message="killed by SIGSEGV")
    report = reports.report(outcome, cases=(reports.case("tiny"),))
    plan = plan_of(report)
    assert plan.failing is None
    made = [(call.case, call.variation) for call in plan.calls]
    assert made[:3] == [("tiny", "nominal"), ("medium", "nominal"), ("large", "nominal")]
    assert len(made) == len(set(made)) == 3 + 4 + 3 * 10
    assert plan_of(reports.failed()).calls == []


def test_timed_calls_are_repeated_up_to_the_wrong_case():
    outcome = Incorrect(kind="values", case="medium, timed", message="wrong")
    done = reports.comparison("tiny", 1.0, 0.1)
    report = reports.report(outcome, cases=(reports.case("tiny"),), comparisons=(done,))
    plan = plan_of(report)
    most = report.request.timing.max_blocks
    assert [(case, blocks) for case, _, blocks in plan.timed] == [("tiny", 20), ("medium", most)]
    assert most != 20
    assert plan.compared_from == 1


def timed_wrong(name: str) -> EvalReport:
    """Return a report of a problem in whose first case a timed call was wrong."""
    report = wrong(name)
    case = report.request.problem.cases[0].name
    cases = [item.model_copy(update={"result": "pass"}) for item in report.cases]
    outcome = Incorrect(kind="values", case=f"{case}, timed", message="wrong")
    timing = report.request.timing.model_copy(update={"min_blocks": 30, "max_blocks": 30})
    request = report.request.model_copy(update={"timing": timing})
    changes = {"cases": tuple(cases), "outcome": outcome, "request": request}
    return report.model_copy(update=changes)


def test_timed_calls_of_the_script_are_those_of_the_judge(tmp_path):
    report = timed_wrong("add_relu")
    case = report.request.problem.cases[0]
    made = globals_of(report, tmp_path)
    problem = made["Problem"]()
    calls = list(made["timed_calls"](problem))[3:]

    plan = TimingPlan(min_blocks=30, max_blocks=30, max_s=1e6)
    session = Scripted.of(plan, steady(2e-3), steady(1e-3))
    session.context = replace(session.context, root=report.seed)
    unchecked = unchecked_variations(report.request.problem, case.name, report.cases)
    session.usable_variations = {case.name: ["scale", "heavy_tail", "edge_values", *unchecked]}
    names = [*(item.name for item in report.request.baselines), "candidate"]
    session.runners = dict.fromkeys(names, session.runners["candidate"])
    exact = Calibration((0.0,) * len(CLASSES), measured=True)
    time_cases(session, exact, [case], names)
    renewals = session.logged("renew")
    bases = [fields["base"] for fields in session.logged("publish")][3 * len(names) :]

    assert len(calls) == len(renewals) > 60
    for call, asked in zip(calls, renewals, strict=True):
        assert (call["seed"], call["forward_seed"]) == (asked["seed"], asked["forward_seed"])
        assert (call["computed"], call["variation"] != "nominal") == (
            asked["variation"],
            asked["varied"],
        )
    assert [call["slot"] * max(bases) // 2 for call in calls] == bases[:: len(names)]


@pytest.mark.parametrize("name", ["add_relu", "softmax"])
def test_inputs_of_timed_calls_are_those_of_the_judge(tmp_path, name):
    report = timed_wrong(name)
    made = globals_of(report, tmp_path)
    problem = made["Problem"]()
    calls = list(made["timed_calls"](problem))
    fields = {"problem_kind": "function", "mode": "train", "grads": [], "keywords": []}
    text = report.request.problem.source.text
    reference = refs.load(text, {**fields, "init_seed": made["INIT_SEED"]})
    first, *others = calls[2:14]
    sample = inputs.make_sample(
        reference, first["params"], "nominal", first["seed"], first["forward_seed"], double=True
    )
    for call in (first, *others):
        if call is not first:
            given = call["seed"], call["forward_seed"], call["computed"]
            varied = call["variation"] != "nominal"
            assert renewed_inputs.renew(reference, sample, *given, varied=varied)
        args, _, _ = problem.inputs(call)
        assert all(map(torch.equal, args, sample.arguments()))


def test_a_generator_of_random_sizes_keeps_the_values_in_the_script_too(tmp_path):
    report = timed_wrong("add_relu")
    made = globals_of(report, tmp_path)
    problem = made["Problem"]()
    sizes = itertools.count(3)
    arguments = problem.arguments
    problem.arguments = lambda call: [torch.ones(next(sizes))] * len(arguments(call))
    first = {"case": report.request.problem.cases[0].name, "seed": 5, "params": {}, "sample": "x"}
    first |= {"variation": "nominal", "computed": "nominal", "slot": 0, "forward_seed": 1}
    first["params"] = report.request.problem.cases[0].params
    layout = made["layout_of"](problem.arguments(first))
    following = made["renewed"](problem, first, layout, random.Random(1), False, True)

    assert (following["seed"], following["variation"]) == (5, "nominal")
    assert following["forward_seed"] != 1
    assert next(sizes) == 3 + 1 + made["RENEWALS"]


def test_correct_unjudged_and_rejected_candidates_get_no_script():
    for name, why in {
        "correct": "the candidate is correct",
        "unjudged": "nothing was judged",
        "rejected": "every compared output was correct; the findings above decided the verdict",
    }.items():
        assert reproducer(getattr(reports, name)()) == ("", why)


def test_an_input_address_is_used_twice_and_then_changes():
    slots = Slots(reports.SEED)
    first = slots.take("tiny", "nominal", 0)
    assert slots.take("tiny", "scale", 0) == first
    taken = [slots.take("tiny", f"{number}", 0) for number in range(30)]
    assert set(taken) == {0, 1, 2}


def test_numbers_in_the_script_are_those_of_the_report(tmp_path):
    report = wrong("add_relu", protocol="official")
    made = globals_of(report, tmp_path)
    assert made["RULE"] == {"name": "allclose", "tolerance": 0.01}
    assert made["WEIGHTS_SEED"] is None
    assert json.loads(json.dumps(made["CALLS"][0]["params"])) == {"rows": 3, "cols": 5}


def test_without_jinja2_a_report_is_shown_and_the_script_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    folder = create_run(tmp_path / "runs", "")
    write_report(folder, reports.incorrect())
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run(cli, ["explain", str(folder)])
    assert result.exit_code == 2
    assert "Reproducer" in result.stdout
    assert result.stderr.splitlines()[-1] == (
        "tilewright: error: reproduce.py is written with jinja2, which is not installed: "
        "pip install 'tilewright[templates]'"
    )
    assert not (folder / "reproduce.py").exists()
    write_report(folder, reports.correct())
    assert run(cli, ["explain", str(folder)]).exit_code == 0
    result = run(cli, ["optimize", "rmsnorm", "--model", "recorded:bundled"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "the file of the best candidate is written with jinja2" in result.stderr


def test_the_script_writes_data_files_of_bytes(tmp_path, monkeypatch):
    report = wrong("add_relu")
    table = SourceFile.of_bytes("the table.bin", b"\xff\x00")
    files = (*report.request.candidate.files, table)
    made = report.request.candidate.model_copy(update={"files": files})
    request = report.request.model_copy(update={"candidate": made})
    space = globals_of(report.model_copy(update={"request": request}), tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(space["main"].__globals__, "fresh_folder", lambda: str(tmp_path))
    monkeypatch.setitem(space["main"].__globals__, "CALLS", [])
    with contextlib.suppress(SystemExit, Exception):
        space["main"]()

    assert (tmp_path / "the table.bin").read_bytes() == b"\xff\x00"
