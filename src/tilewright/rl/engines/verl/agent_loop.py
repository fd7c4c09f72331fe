"""The agent loop of verl: one output for each turn, of the tokens that were sampled."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import ray
import torch
from verl.experimental.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, register

from tilewright.rl.engines.verl.prompt_exchange import SamplingRequest
from tilewright.rl.engines.verl.registered_names import ACTOR, AGENT_LOOP
from tilewright.rl.engines.verl.run_service import SCORED, TRAINED, PlayedTurn


class TurnOutput(AgentLoopOutput):
    """One turn.

    verl copies the score of the last output of a loop onto the others, so `as_dict` writes that of
    the turn. An unjudged turn gets 0 there: the estimator reads verdicts, never this field.
    """

    turn_reward: float = 0.0
    trajectory: int
    turn: int

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of the row, with the reward of this turn at its last token."""
        found: dict[str, Any] = super().as_dict()
        scores = torch.zeros_like(found["response_mask"], dtype=torch.float32)
        scores[-1] = found.pop("turn_reward", self.turn_reward)
        found["rm_scores"] = scores
        return found


def output_of(played: PlayedTurn, step: int) -> TurnOutput:
    """Return the output of a turn that was played after so many steps."""
    sample = played.sample
    reward = played.reward if played.reward is not None else 0.0
    return TurnOutput(
        prompt_ids=list(sample.prompt),
        response_ids=list(sample.reply),
        response_mask=[1] * len(sample.reply),
        response_logprobs=list(sample.logprobs),
        # With a score, verl asks no reward function of its own.
        reward_score=reward,
        turn_reward=reward,
        trajectory=played.trajectory,
        turn=played.turn,
        num_turns=played.turn + 1,
        metrics=AgentLoopMetrics(),
        extra_fields={
            "reward_extra_info": {},
            "min_global_steps": step,
            "max_global_steps": step,
        },
    )


@register(AGENT_LOOP)
class TurnLoop(AgentLoopBase):
    """Samples the prompts of one trajectory, which the run decides. Lifetime: one trajectory."""

    def __init__(self, server_manager: Any, **_: Any) -> None:  # noqa: ANN401 - of verl
        # verl's own initialisation prepares templates of messages. This loop handles ids alone.
        self.server_manager = server_manager

    async def run(self, sampling_params: dict[str, Any], **fields: Any) -> list[TurnOutput]:  # noqa: ANN401, ARG002
        """Return the turns of the trajectory of a row of `NumberedPrompts`."""
        run, name = ray.get_actor(ACTOR), uuid4().hex
        kind = SCORED if fields["held_out"] else TRAINED
        # verl counts steps from 1, and scores after the step of its number.
        step = int(fields["global_steps"]) - (kind == TRAINED)
        number = int(fields["index"]) * int(fields["rollouts"]) + int(fields["session_id"])
        while isinstance(
            found := await run.next_prompt.remote(kind, step, number), SamplingRequest
        ):
            await self._sample(run, found, name)
        return [output_of(turn, step) for turn in found]

    async def _sample(self, run: Any, prompt: SamplingRequest, name: str) -> None:  # noqa: ANN401 - an actor
        params = {**prompt.sampling, "max_tokens": prompt.reply_tokens, "logprobs": True}
        params["repetition_penalty"] = 1.0
        try:
            output = await self.server_manager.generate(
                request_id=name, prompt_ids=list(prompt.ids), sampling_params=params
            )
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - it ends the batch, with its text
            await run.fail.remote(prompt.ticket, f"{type(error).__name__}: {error}")
        else:
            found = list(output.token_ids), list(output.log_probs or ())
            await run.bring.remote(prompt.ticket, *found)
