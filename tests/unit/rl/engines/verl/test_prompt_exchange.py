"""Prompts go to loops of other processes, and replies come back in the order of the prompts."""

from __future__ import annotations

import asyncio

import pytest

from tilewright.errors import PolicyError
from tilewright.rl.engines.verl.prompt_exchange import PromptExchange
from tilewright.rl.presets import SamplingSection

SAMPLING = SamplingSection(reply_tokens=4)


def exchange() -> PromptExchange:
    return PromptExchange("local:x", None, frozenset({0}), asyncio.get_running_loop())


def test_replies_come_back_in_the_order_of_the_prompts():
    async def main():
        given = exchange()
        turn = asyncio.to_thread(given.sample, [[1, 2], [3]], "seed", SAMPLING)
        waiting = asyncio.create_task(turn)
        second, first = await given.next_prompt(1), await given.next_prompt(0)
        assert (first.ids, second.ids) == ((1, 2), (3,))
        assert first.sampling == {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
        given.bring(second.ticket, [7, 8, 9, 9], [-1.0] * 4)
        given.bring(first.ticket, [5, 0], [-0.5, -0.25])
        return await waiting

    one, two = asyncio.run(main())
    assert (one.prompt, one.reply, one.logprobs, one.finish) == (
        (1, 2),
        (5, 0),
        (-0.5, -0.25),
        "stop",
    )
    assert (two.reply, two.finish) == ((7, 8, 9, 9), "length")


def test_a_loop_that_fails_ends_the_batch():
    async def main(bring):
        given = exchange()
        waiting = asyncio.create_task(asyncio.to_thread(given.sample, [[1]], "seed", SAMPLING))
        bring(given, (await given.next_prompt(0)).ticket)
        await waiting

    with pytest.raises(PolicyError, match=r"local:x: the server is gone"):
        asyncio.run(main(lambda given, ticket: given.fail(ticket, "the server is gone")))
    with pytest.raises(PolicyError, match="2 tokens and 1 log-probabilities"):
        asyncio.run(main(lambda given, ticket: given.bring(ticket, [5, 6], [-1.0])))


def test_the_end_of_a_batch_reaches_each_loop():
    async def main():
        given = exchange()
        given.end(2)
        return await given.next_prompt(0), await given.next_prompt(1)

    assert asyncio.run(main()) == (None, None)
