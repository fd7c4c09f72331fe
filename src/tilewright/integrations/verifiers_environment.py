"""The environment of verifiers 0.2: `load_environment` over the problems at an address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import verifiers as vf
from datasets import Dataset

from tilewright.integrations.judged_answers import (
    VERDICTS,
    AnswerFigures,
    Episode,
    harness_settings,
    judgeable_problems,
    prompt_text,
    shared_episodes,
)
from tilewright.records import Problem

FIELD = "tilewright"
"""The key of a rollout's state with its judged answers, oldest first."""
RUN_NAME = "verifiers"
FIGURES = ("speedup", "low", "high", "coverage", "seconds", "timed")


class KernelRubric(vf.Rubric):
    """Reads the reward and the figures of the last answer. An unjudged rollout has none."""

    async def score_rollout(self, state: vf.State) -> None:
        """Write the reward and the metrics of a rollout; `None`: there is no number."""
        answers = state.get(FIELD) or []
        if not answers:
            state["reward"], state["metrics"] = None, {}
            return
        last = AnswerFigures.of_fields(answers[-1])
        metrics = last.metrics()
        names = (*VERDICTS, *FIGURES)
        state["reward"] = last.reward
        state["metrics"] = {name: metrics[name] for name in names if metrics[name] is not None}

    async def score_group(self, states: list[vf.State]) -> None:
        """Score the rollouts of a task; those without a reward leave the mean of the group."""
        for state in states:
            await self.score_rollout(state)
        earned = [state["reward"] for state in states if state["reward"] is not None]
        mean = sum(earned) / len(earned) if earned else None
        for state in states:
            reward = state["reward"]
            state["advantage"] = None if reward is None or mean is None else reward - mean
            for step in state["trajectory"]:
                step["reward"], step["advantage"] = reward, state["advantage"]


class KernelEnvironment(vf.MultiTurnEnv):
    """One problem per row; the next message of a rollout is our feedback."""

    def __init__(self, settings: Any, turns: int, **options: Any) -> None:  # noqa: ANN401 - verifiers'
        super().__init__(max_turns=turns, **options)
        # A group of rubrics adds rewards up, so that an unjudged rollout would have a number.
        self.rubric = KernelRubric(funcs=[])
        self._tilewright = settings

    async def setup_state(self, state: vf.State) -> vf.State:
        """Begin the episode of a rollout."""
        episode = Episode(shared_episodes(self._tilewright, RUN_NAME), self._tilewright)
        episode.reset(Problem.from_json(state["info"]["problem"]))
        state["episode"], state[FIELD], state["following"] = episode, [], ""
        return state

    async def add_model_response(self, state: vf.State, *given: Any, **named: Any) -> None:  # noqa: ANN401 - verifiers'
        """Judge a reply as soon as it is there; an unjudged one ends the rollout with an error."""
        await super().add_model_response(state, *given, **named)
        answer, prompt = await state["episode"].answer(_text(state["trajectory"][-1]["completion"]))
        state[FIELD].append(answer.fields())
        state["following"] = prompt_text(prompt)[1] if prompt else answer.feedback
        if answer.verdict == "unjudged":
            raise vf.InfraError(f"{answer.problem} is unjudged: {answer.reason}; run {answer.run}")

    async def env_response(self, messages: vf.Messages, state: vf.State, **_: Any) -> vf.Messages:  # noqa: ANN401, ARG002 - verifiers'
        """Return the prompt of the next turn."""
        return [{"role": "user", "content": state["following"]}]


def load_environment(
    problems: str = "bundled",
    turns: int = 1,
    reward: str = "tilewright",
    settings: Sequence[str] = (),
) -> vf.Environment:
    """Return the environment of the problems at an address.

    Args:
        problems: an address, for example `kernelbench/level1`.
        turns: answers per rollout; the last one has the reward.
        reward: name of the reward, the setting `loop.reward`.
        settings: more settings of tilewright, for example `eval.device=cuda`.

    Raises:
        ConfigError: there is no such address, reward or setting.
    """
    chosen = harness_settings(settings, reward)
    episode = Episode(shared_episodes(chosen, RUN_NAME), chosen)
    rows = [_row(item, episode) for item in judgeable_problems(problems, chosen)]
    data = Dataset.from_list(rows)
    return KernelEnvironment(chosen, turns, dataset=data, eval_dataset=data)


def _row(problem: Problem, episode: Episode) -> dict[str, Any]:
    system, prompt = prompt_text(episode.reset(problem))
    first = [{"role": "system", "content": system}] if system else []
    return {
        "prompt": [*first, {"role": "user", "content": prompt}],
        "answer": "",
        "info": {"problem": problem.to_json()},
    }


def _text(completion: Any) -> str:  # noqa: ANN401 - text or messages
    if isinstance(completion, str):
        return completion
    last = completion[-1]
    content = last["content"] if isinstance(last, dict) else last.content
    return content if isinstance(content, str) else ""
