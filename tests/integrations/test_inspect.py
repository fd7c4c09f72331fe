"""Inspect 0.3.285: `eval` with scripted replies and no network, and the table cell by cell."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.conftest import program, run
from tests.twelve_candidates import KINDS, SETTINGS, TWELVE, write_problems
from tilewright.integrations.packages import INSPECT as PACKAGE
from tilewright.integrations.packages import in_range, installed
from tilewright.integrations.verdict_table import INSPECT, Ours

version = installed("inspect-ai")
if version is None or not in_range(version, PACKAGE):
    pytest.skip(f"not shown: inspect-ai {version}", allow_module_level=True)

pytestmark = pytest.mark.timeout(900)
UNTIMED = "eval.timing.enabled=false"
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def evaluated(
    place: Path, problems: Path, model: str = "twelve", *more: str, turns: int = 1
) -> dict[str, Any]:
    """Run `inspect eval` in a process of its own; return its log as a document."""
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); "
        "from tests.integrations import scripted_model; "
        "from inspect_ai._cli.main import main; main()"
    )
    settings = ",".join((*SETTINGS, *more))
    run(
        *(program("python"), "-c", code, ROOT, "eval", "tilewright/kernels"),
        *("--model", f"scripted/{model}", "--log-format", "json", "--log-dir", place / "logs"),
        *("--display", "plain", "-T", f"problems={problems}", "-T", f"turns={turns}"),
        *("-T", f"settings={settings}"),
    )
    return json.loads(next((place / "logs").glob("*.json")).read_text())


def run_folder(log: dict[str, Any]) -> Path:
    return Path(log["samples"][0]["scores"]["correct"]["metadata"]["run"])


def test_each_of_twelve_candidates_gets_its_cell_and_means_equal_the_report(place):
    log = evaluated(place, write_problems(place / "problems"))
    assert (log["status"], len(log["samples"])) == ("success", len(TWELVE))
    for sample in log["samples"]:
        correct, fast, sure = (
            sample["scores"][name] for name in ("correct", "fast_p", "fast_p_sure")
        )
        answer = correct["metadata"]
        kind, row = KINDS[sample["id"].rpartition("/")[2]], Ours(answer["row"])
        assert row in kind.rows, (kind.name, answer)
        cell = INSPECT[row]
        assert _value(correct) == cell.correct
        speed = {"by speed-up": answer["speedup"], "zero": 0, None: None}[cell.fast_p]
        low = {"by speed-up": answer["low"], "zero": 0, None: None}[cell.fast_p]
        assert _value(fast) == (None if speed is None else int(speed > 1))
        assert _value(sure) == (None if low is None else int(low > 1))
        assert not answer["report"] or Path(answer["report"]).is_file()
    names = [
        sample["id"] for sample in log["samples"] if _value(sample["scores"]["correct"]) is None
    ]
    assert [name.rpartition("/")[2] for name in names] == ["k_judge_killed"]

    run(program("tilewright"), "report", run_folder(log))
    report = json.loads((run_folder(log) / "report.json").read_text())
    numbers = report["runs"][0]["summary"]["protocols"]["strict"]
    fast_1 = next(item for item in numbers["fast_p"] if item["p"] == 1)
    scores = {item["name"]: item for item in log["results"]["scores"]}
    values = {
        name: {key: item["value"] for key, item in score["metrics"].items()}
        for name, score in scores.items()
    }
    assert scores["correct"]["unscored_samples"] == 1
    assert values["correct"]["mean"] == pytest.approx(numbers["correct_share"], abs=1e-9)
    for ours, theirs in (("mean", "fast_p"), ("low_95", "low"), ("high_95", "high")):
        assert values["fast_p"][ours] == pytest.approx(fast_1[theirs], abs=1e-9)
    assert values["fast_p_sure"]["mean"] == pytest.approx(fast_1["believed"], abs=1e-9)


def _value(score: dict[str, Any]) -> float | None:
    value = score["value"]
    return None if value is None or (isinstance(value, float) and math.isnan(value)) else value


def test_the_feedback_is_the_next_message(place):
    problems = write_problems(place / "problems", TWELVE[:1])
    log = evaluated(place, problems, "first-wrong", UNTIMED, turns=2)
    (sample,) = log["samples"]
    users = [item["content"] for item in sample["messages"] if item["role"] == "user"]
    assert (len(users), "Verdict: incorrect" in users[1]) == (2, True)
    assert sample["scores"]["correct"]["value"] == 1
    assert sample["scores"]["fast_p"]["metadata"]["verdict"] == "correct"
    assert _value(sample["scores"]["fast_p"]) is None


def test_the_reply_parser_decides_which_code_block_counts(place):
    problems = write_problems(place / "problems", TWELVE[:1])
    log = evaluated(place, problems, "two-blocks", UNTIMED)
    score = log["samples"][0]["scores"]["correct"]
    assert (score["value"], "def k_faster" in score["answer"]) == (1, True)


@pytest.mark.usefixtures("place")
def test_a_wrong_address_is_named():
    text = run(
        *(program("inspect"), "eval", "tilewright/kernels", "--model", "none/none"),
        *("--display", "plain", "-T", "problems=add_rel"),
        ok=False,
    )
    assert "did you mean add_relu" in " ".join(text.replace("\u2502", " ").split())
