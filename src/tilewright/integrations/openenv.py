"""OpenEnv 0.10: the actions, the observations and the client of tilewright's environment."""

from __future__ import annotations

from typing import Any, Literal

from tilewright.integrations.packages import OPENENV, require

require(OPENENV)

from openenv.core import EnvClient  # noqa: E402 - after the check of the package
from openenv.core.client_types import StepResult  # noqa: E402
from openenv.core.env_server import Action, Observation, State  # noqa: E402
from pydantic import Field, model_validator  # noqa: E402

MAX_SOURCE_CHARS = 1_000_000
STEP_TIMEOUT_S = 900.0
"""Seconds that the client waits for a step, which may wait for a device."""


class KernelAction(Action):
    """A candidate: its source, or a model's whole reply, of which the reply parser takes code."""

    source: str = Field(default="", max_length=MAX_SOURCE_CHARS)
    reply: str = Field(default="", max_length=MAX_SOURCE_CHARS)
    language: Literal["torch", "triton", "cpp", "cuda"] | None = None
    """The form of `source`; `None`: Python. The report has the detected language."""

    @model_validator(mode="after")
    def _one_text(self) -> KernelAction:
        if self.source and self.reply:
            raise ValueError("give `source` or `reply`, not both")
        return self


class KernelObservation(Observation):
    """A prompt after `reset`; after `step` the verdict too. `None`: not measured."""

    problem: str = ""
    prompt: str = ""
    """The text of the next prompt, which holds the feedback about earlier answers."""
    system: str = ""
    turn: int = 0
    """Answers so far."""
    verdict: Literal["correct", "incorrect", "failed", "rejected", "unjudged"] | None = None
    row: str = ""
    """The row of the published table of verdicts."""
    reason: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    coverage: float | None = None
    seconds: float = 0.0
    findings: list[str] = Field(default_factory=list)
    labels: list[str] = Field(default_factory=list)
    protocol: str = ""
    feedback: str = ""
    report: str = ""
    """Path of the report on the server; empty: there is none."""
    run: str = ""
    """Run folder of the episode on the server, which `tilewright view` opens."""


class KernelState(State):
    """The state of an episode."""

    problem: str = ""
    split: str = ""
    run: str = ""
    verdict: str | None = None
    """The newest verdict."""


class KernelEnv(EnvClient[KernelAction, KernelObservation, KernelState]):  # type: ignore[type-arg, unused-ignore]
    """A client: `with KernelEnv(base_url=...).sync() as env`."""

    def __init__(self, base_url: str | None = None, **options: Any) -> None:  # noqa: ANN401 - OpenEnv's
        super().__init__(base_url, **{"message_timeout_s": STEP_TIMEOUT_S, **options})

    def _step_payload(self, action: KernelAction) -> dict[str, Any]:
        return action.model_dump()  # type: ignore[no-any-return, unused-ignore]

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[KernelObservation]:
        shared = {name: payload.get(name) for name in ("reward", "done")}
        observation = KernelObservation(**payload["observation"], **shared)
        return StepResult(observation, observation.reward, observation.done)

    def _parse_state(self, payload: dict[str, Any]) -> KernelState:
        return KernelState(**payload)


def kernrl_view(observation: KernelObservation) -> dict[str, Any]:
    """Return the fields that the environment `kernrl` shows for a step.

    `max_diff` is always `None`, because a report states errors as multiples of a tolerance. An
    unjudged answer has `None` everywhere. `speedup` is the estimate of a correct answer alone.
    """
    if observation.verdict in (None, "unjudged"):
        names = ("compilation_success", "correctness_pass", "speedup", "max_diff")
        return dict.fromkeys(names)
    return {
        "compilation_success": observation.row != "failed before its first call",
        "correctness_pass": observation.verdict == "correct",
        "speedup": observation.speedup,
        "max_diff": None,
    }
