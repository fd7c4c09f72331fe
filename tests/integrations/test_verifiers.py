"""verifiers 0.4.0: a made project, `vf-eval` and `vf-validate`, and the table cell by cell."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.conftest import ModelServer, program, run
from tests.twelve_candidates import KINDS, SETTINGS, TWELVE, write_copies, write_problems
from tilewright.integrations.judged_answers import VERDICTS
from tilewright.integrations.packages import VERIFIERS, in_range, installed
from tilewright.integrations.verdict_table import HARNESSES, Ours

version = installed("verifiers")
pytestmark = [
    pytest.mark.skipif(
        version is None or not in_range(version, VERIFIERS),
        reason=f"not shown: verifiers {version}",
    ),
    pytest.mark.timeout(1200),
]
FIGURES = {*VERDICTS, "speedup", "low", "high", "coverage", "seconds", "timed", "judged_turns"}


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the wheel of a made project beside this Python; return its name."""
    folder = tmp_path_factory.mktemp("project")
    run(program("tilewright"), "integrations", "new", "verifiers", "my-kernels", "--dir", folder)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation")
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", *options, "--wheel-dir", folder, folder / "my-kernels")
    wheel = next(folder.glob("*.whl"))
    run(*pip, "install", "--force-reinstall", *options[:3], wheel)
    return "my-kernels"


def evaluated(
    project: str, model: ModelServer, problems: str | Path, out: Path, *more: str, **task: Any
) -> list[dict[str, Any]]:
    options = [
        word for name, value in task.items() for word in (f"--env.taskset.task.{name}", str(value))
    ]
    run(
        *(program("vf-eval"), project, "--no-push", "--no-rich", "-m", "stand-in", "-o", out),
        *("--env.taskset.problems", problems, "--client.base-url", model.url),
        *("--client.api-key-var", "MODEL_KEY", *options, *more),
    )
    traces = next(out.rglob("traces.jsonl")).read_text().splitlines()
    return [
        trace for line in traces for trace in json.loads(line).get("traces", [json.loads(line)])
    ]


def test_each_of_twelve_candidates_gets_its_cell(project, model, place):
    problems = write_problems(place / "problems")
    traces = evaluated(
        project, model, problems, place / "out", settings=json.dumps(SETTINGS), reward="tilewright"
    )
    assert len(traces) == len(TWELVE)
    for trace in traces:
        answer = trace["info"]["tilewright"][-1]
        kind, row = KINDS[answer["problem"].rpartition("/")[2]], Ours(answer["row"])
        assert row in kind.rows, (kind.name, answer)
        reward, metrics = trace["rewards"]["reward"], trace["metrics"]
        assert set(metrics) >= FIGURES, kind.name
        match HARNESSES[row].reward:
            case "by rule":
                assert reward["score"] == pytest.approx(1 + min(max(metrics["low"], 0), 3))
                assert metrics["low"] <= metrics["speedup"] <= metrics["high"]
            case "zero":
                assert (reward["score"], metrics["speedup"], metrics["low"]) == (0, None, None)
            case "none":
                assert (reward, trace["ok"], bool(trace["errors"])) == (None, False, True)
                assert metrics["speedup"] is None
        assert [name for name in VERDICTS if metrics[name]] == [answer["verdict"]]
        assert all(metrics[f"finding_{name}"] == 1 for name in answer["findings"])
        assert not answer["report"] or Path(answer["report"]).is_file()
    speeds = {t["info"]["tilewright"][-1]["problem"].rpartition("/")[2]: t for t in traces}
    assert speeds["k_faster"]["metrics"]["low"] > 1 > speeds["k_slower"]["metrics"]["high"]


def test_twenty_tasks_with_two_rollouts_and_sixteen_at_once(project, model, place):
    folder = write_copies(place / "problems", 20)
    untimed = json.dumps([*SETTINGS, "eval.timing.enabled=false"])
    traces = evaluated(
        project, model, folder, place / "out", *("-r", "2", "-c", "16"), settings=untimed
    )
    assert len(traces) == 40
    for trace in traces:
        assert set(trace["metrics"]) >= FIGURES
        assert (trace["ok"], trace["rewards"]["reward"]["score"]) == (True, 1.0)
        assert (trace["metrics"]["correct"], trace["metrics"]["timed"]) == (1, 0)
    run(
        *(program("vf-validate"), project, "--taskset.problems", folder, "--no-rich"),
        *("--runtime.type", "subprocess", "--taskset.task.settings", untimed),
        *("-o", place / "valid"),
    )
    found = json.loads(next((place / "valid").rglob("summary.json")).read_text())
    assert found["checks"]["gold"]["valid"] == found["checks"]["noop"]["valid"] == 20
    rows = next((place / "valid").rglob("results.jsonl")).read_text().splitlines()
    assert {json.loads(line)["noop"]["reward"] for line in rows} == {0.0}


def test_the_feedback_is_the_next_message(project, model, place):
    write_problems(place / "problems", TWELVE[:1])
    untimed = json.dumps([*SETTINGS, "eval.timing.enabled=false"])
    prompts: list[str] = []

    def choose(prompt: str) -> str:
        prompts.append(prompt)
        return (
            KINDS["k_wrong"].reply.replace("k_wrong", "k_faster")
            if len(prompts) == 1
            else (KINDS["k_faster"].reply)
        )

    model.choose = choose
    (trace,) = evaluated(
        project, model, place / "problems", place / "out", settings=untimed, turns=2
    )
    verdicts = [item["verdict"] for item in trace["info"]["tilewright"]]
    assert verdicts == ["incorrect", "correct"]
    assert "Verdict: incorrect" in prompts[1]
    assert trace["rewards"]["reward"]["score"] == 1.0
    assert trace["metrics"]["judged_turns"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--env.taskset.problems", "add_rel"), "did you mean add_relu"),
        (("--env.taskset.task.reward", "tilewrite"), "did you mean"),
        (("--env.taskset.problems", "kernelbench/level1"), "is not imported yet"),
    ],
)
@pytest.mark.usefixtures("place")
def test_a_wrong_option_is_named(project, words, message):
    text = run(program("vf-eval"), project, "--no-push", "--no-rich", *words, ok=False)
    assert message in " ".join(text.replace("\u2502", " ").split())
    assert "Traceback" not in text
