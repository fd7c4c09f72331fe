"""A task set of verifiers 0.4: one task for each problem at an address, judged by tilewright.

The model's program runs in verifiers' process and only asks the model. So it needs no container,
and the candidate runs in tilewright's sandbox alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import httpx
import verifiers.v1 as vf
from pydantic import Field, field_validator

from tilewright.errors import NoVerdict
from tilewright.integrations.judged_answers import (
    AnswerFigures,
    Episode,
    harness_settings,
    judgeable_problems,
    prompt_text,
    reference_is_correct,
    shared_episodes,
)
from tilewright.records import Problem

FIELD = "tilewright"
"""The key of a trace's `info` with the judged answers, oldest first."""
RUN_NAME = "verifiers"


class KernelData(vf.TaskData):
    """One problem."""

    problem: str
    """The problem's record as JSON."""


class RolloutState(vf.State):
    """The state of a rollout in its process: the episode whose answers are judged."""

    episode: Any = None


class KernelTaskConfig(vf.TaskConfig):
    """The options `--env.taskset.task.*`."""

    reward: str = "tilewright"
    """Name of the reward: the setting `loop.reward`."""
    turns: int = Field(default=1, ge=1)
    """Answers per rollout. Each later prompt has the feedback about the earlier ones. The last
    answer has the reward and the metrics."""
    settings: list[str] = Field(default_factory=list)
    """More settings of tilewright, for example `eval.device=cuda`."""

    @field_validator("reward")
    @classmethod
    def _known_reward(cls, value: str) -> str:
        harness_settings((), value)
        return value


class KernelsConfig(vf.TasksetConfig):
    """The options `--env.taskset.*`."""

    problems: str = "bundled"
    """An address of problems, for example `kernelbench/level1`."""
    task: KernelTaskConfig = KernelTaskConfig()

    @field_validator("problems")
    @classmethod
    def _known_address(cls, value: str) -> str:
        judgeable_problems(value, harness_settings(()))
        return value


class KernelTask(vf.Task[KernelData, RolloutState, KernelTaskConfig]):
    """One problem, whose answers tilewright judges."""

    @property
    def key(self) -> str:
        """The problem's id, which is the same for every seed and setting."""
        return self._problem.id

    @property
    def _problem(self) -> Problem:
        return Problem.from_json(self.data.problem)

    async def judge(self, trace: vf.Trace) -> str:
        """Judge the newest answer, unless it is judged; return the text of the next prompt."""
        answers: list[dict[str, Any]] = trace.info.setdefault(FIELD, [])
        replies = trace.assistant_messages
        if trace.state.episode is None:
            settings = harness_settings(self.config.settings, self.config.reward)
            trace.state.episode = Episode(shared_episodes(settings, RUN_NAME), settings)
            trace.state.episode.reset(self._problem)
        following = ""
        # An untouched task has no reply; it is judged as an answer without code.
        for text in [item.content or "" for item in replies][len(answers) :] or [""] * (
            not answers
        ):
            answer, prompt = await trace.state.episode.answer(text)
            answers.append(answer.fields())
            following = prompt_text(prompt)[1] if prompt else answer.feedback
        return following

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:  # noqa: ARG002 - theirs
        """Judge the last answer."""
        await self.judge(trace)

    async def validate(self, runtime: vf.Runtime) -> bool:  # noqa: ARG002 - verifiers' argument
        """Judge the reference against itself.

        Raises:
            NoVerdict: there is no verdict.
        """
        settings = harness_settings(self.config.settings, self.config.reward)
        return await asyncio.to_thread(reference_is_correct, self._problem, settings)

    @vf.reward
    async def reward(self, trace: vf.Trace) -> float:
        """Return the reward of the last answer.

        Raises:
            NoVerdict: it is unjudged. The rollout then has an error, and the reward stays `None`.
        """
        last = _last(trace)
        if last["reward"] is None:
            raise NoVerdict(f"{last['problem']} is unjudged: {last['reason']}; run {last['run']}")
        return float(last["reward"])

    @vf.metric
    async def figures(self, trace: vf.Trace) -> Mapping[str, float]:
        """Return the figures of the last answer; those not measured are `None` in the trace."""
        answer = AnswerFigures.of_fields(_last(trace))
        found = answer.metrics() | {"judged_turns": float(len(trace.info[FIELD]))}
        trace.metrics |= {name: None for name, value in found.items() if value is None}
        return {name: value for name, value in found.items() if value is not None}


def _last(trace: vf.Trace) -> dict[str, Any]:
    answers: list[dict[str, Any]] = trace.info[FIELD]
    return answers[-1]


class Kernels(vf.Taskset[KernelTask, KernelsConfig]):
    """The problems at an address as tasks."""

    def load(self) -> Iterable[KernelTask]:
        """Yield a task for each problem."""
        options = self.config.task
        settings = harness_settings(options.settings, options.reward)
        episode = Episode(shared_episodes(settings, RUN_NAME), settings)
        for problem in judgeable_problems(self.config.problems, settings):
            system, prompt = prompt_text(episode.reset(problem))
            data = KernelData(
                name=problem.id,
                prompt=prompt,
                system_prompt=system or None,
                problem=problem.to_json(),
            )
            yield KernelTask(data, options)


class KernelsEnvConfig(vf.EnvConfig):
    """The options `--env.*`: the agent runs on this machine, and needs no container."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class KernelsEnv(vf.Env[KernelsEnvConfig]):
    """One agent that gets our feedback as the next message, for as many turns as the task says."""

    async def run(self, task: KernelTask, agents: vf.Agents) -> None:
        """Play one rollout."""
        async with agents.agent.interaction(task) as interaction:
            segment = await interaction.turn()
            for _ in range(task.config.turns - 1):
                if segment.terminated:
                    break
                segment = await interaction.turn(await task.judge(interaction.trace))


class KernelsHarnessConfig(vf.HarnessConfig):
    """The options `--env.agent.harness.*`."""


class KernelsHarness(vf.Harness[KernelsHarnessConfig]):
    """Asks the model once per turn, from this process. It gives the model no tool."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,  # noqa: ARG002
        runtime: vf.Runtime,  # noqa: ARG002
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],  # noqa: ARG002
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Send the conversation to the model; verifiers records the reply in the trace."""
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            messages.append({"role": "user", "content": prompt})
        else:
            messages += [
                {"role": item.role, "content": _content(item.content)} for item in prompt or ()
            ]
        async with httpx.AsyncClient(timeout=None) as client:
            answer = await client.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                json={"model": ctx.model, "messages": messages},
                headers={"authorization": f"Bearer {secret}"},
            )
        failed = answer.is_error
        return vf.ProgramResult(
            exit_code=int(failed), stdout="", stderr=answer.text if failed else ""
        )


def _content(content: Any) -> str:  # noqa: ANN401 - text or parts
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(getattr(part, "text", "") for part in content)
