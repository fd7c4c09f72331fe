"""verifiers 0.2.1: `load_environment`, single-turn and multi-turn, and an unjudged rollout."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integrations.conftest import ModelServer
from tests.twelve_candidates import KINDS, SETTINGS, TWELVE, write_copies, write_problems
from tilewright.integrations.packages import OLD_VERIFIERS, in_range, installed
from tilewright.integrations.verdict_table import HARNESSES, Ours

version = installed("verifiers")
if version is None or not in_range(version, OLD_VERIFIERS):
    pytest.skip(f"not shown: verifiers {version}", allow_module_level=True)

from verifiers.types import ClientConfig  # noqa: E402

from tilewright.integrations.verifiers import load_environment  # noqa: E402

pytestmark = pytest.mark.timeout(900)
UNTIMED = "eval.timing.enabled=false"


def evaluated(model: ModelServer, rollouts: int, **options: Any) -> list[dict[str, Any]]:
    environment = load_environment(**options)
    client = ClientConfig(api_key_var="MODEL_KEY", api_base_url=model.url)
    found = asyncio.run(
        environment.evaluate(
            client=client,
            model="stand-in",
            num_examples=-1,
            rollouts_per_example=rollouts,
            max_concurrent=16,
            state_columns=["tilewright"],
        )
    )
    return list(found["outputs"])


def test_each_of_twelve_candidates_gets_its_cell(model, place):
    problems = write_problems(place / "problems")
    outputs = evaluated(model, 1, problems=str(problems), settings=SETTINGS)
    assert len(outputs) == len(TWELVE)
    for output in outputs:
        text = str(output["prompt"])
        kind = next(kind for name, kind in KINDS.items() if name in text)
        metrics = output["metrics"]
        (verdict,) = (
            name
            for name in ("correct", "incorrect", "failed", "rejected", "unjudged")
            if metrics[name]
        )
        allowed = {"correct, timed": "correct"}
        assert verdict in {
            allowed.get(row, str(row).partition(" ")[0].rstrip(":")) for row in kind.rows
        }
        match HARNESSES[Ours(kind.rows[0])].reward:
            case "by rule":
                assert output["reward"] == pytest.approx(1 + min(max(metrics["low"], 0), 3))
            case "zero":
                assert (output["reward"], "speedup" in metrics) == (0, False)
            case "none":
                assert output["reward"] is None
                assert "unjudged" in str(output["error"])


def test_twenty_tasks_with_two_rollouts_and_sixteen_at_once(model, place):
    folder = write_copies(place / "problems", 20)
    outputs = evaluated(model, 2, problems=str(folder), settings=(*SETTINGS, UNTIMED))
    assert len(outputs) == 40
    assert len({output["example_id"] for output in outputs}) == 20
    for output in outputs:
        assert (output["reward"], output["error"]) == (1, None)
        metrics = output["metrics"]
        assert (metrics["correct"], metrics["timed"]) == (1, 0)
        assert metrics["seconds"] > 0


def test_the_feedback_is_the_next_message(model, place):
    write_problems(place / "problems", TWELVE[:1])
    prompts: list[str] = []

    def choose(prompt: str) -> str:
        prompts.append(prompt)
        wrong = KINDS["k_wrong"].reply.replace("k_wrong", "k_faster")
        return wrong if len(prompts) == 1 else KINDS["k_faster"].reply

    model.choose = choose
    settings = (*SETTINGS, UNTIMED)
    (output,) = evaluated(model, 1, problems=str(place / "problems"), turns=2, settings=settings)
    assert (output["reward"], output["metrics"]["correct"], output["metrics"]["timed"]) == (1, 1, 0)
    assert "Verdict: incorrect" in prompts[1]
