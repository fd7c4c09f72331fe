"""Turns as rows to train on: a prompt with its reply, or a conversation with what counts in it.

In a conversation each message has a `weight`: 1 on an assistant's message that is to be learned,
0 on all others, as OpenAI's fine-tuning files have it. A chat template can read it, see
`WEIGHED_TEMPLATE`. Where every assistant's message counts, trainers need no weights: TRL's
`assistant_only_loss=True` is the same then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from tilewright.languages.reply_parser import spoken
from tilewright.loop.prompts import conversation
from tilewright.records import Problem
from tilewright.records.events import RunStarted, Turn
from tilewright.rl.data.logs import RunLog
from tilewright.scoring.rewards import REWARDS

__all__ = ["SFT_SHAPE", "TURN_SHAPE", "WEIGHED_TEMPLATE", "sft_rows", "turn_row"]

Row = dict[str, Any]
_MESSAGES = [{"role": "string", "content": "string"}]
_FACTS: Row = {
    "id": "string",
    "problem": "string",
    "sample": "int64",
    "turn": "int64",
    "verdict": "string",
    "speedup": "double",
    "speedup_low": "double",
    "coverage": "double",
    "findings": ["string"],
    "labels": ["string"],
    "rewards": dict.fromkeys(REWARDS, "double"),
    "model": "string",
}
TURN_SHAPE: Row = {
    **_FACTS,
    "prompt": _MESSAGES,
    "completion": _MESSAGES,
    "reasoning": "string",
    "tokens": ["int64"],
    "logprobs": ["double"],
}
SFT_SHAPE: Row = {
    "id": "string",
    "problem": "string",
    "sample": "int64",
    "messages": [{"role": "string", "content": "string", "weight": "int64"}],
    "turns": [_FACTS],
}
WEIGHED_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' and m.get('weight', 1) %}"
    "{% generation %}{{ m['content'] }}<|im_end|>\n{% endgeneration %}"
    "{% else %}{{ m['content'] }}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""A ChatML template whose assistant mask is that of the weights."""


def turn_row(log: RunLog, turn: Turn, problem: Problem) -> Row:
    """Return the prompt that was shown, the reply, and what came of it.

    `prompt` and `completion` are lists of messages, as trainers take them. Rewards are given by
    each rule, `None` where the turn was not judged. Tokens and log-probabilities are the
    sampler's, where the policy knew them.
    """
    reply = turn.reply
    assert reply is not None
    return {
        **_facts(turn),
        "prompt": _prompt(log.begun, problem, log.shown(turn), turn),
        "completion": [{"role": "assistant", "content": reply.text}],
        "reasoning": reply.reasoning,
        "tokens": list(reply.tokens),
        "logprobs": list(reply.logprobs),
    }


def sft_rows(
    log: RunLog, turns: Sequence[Turn], problem: Problem, learned: Collection[str]
) -> Iterator[Row]:
    """Yield conversations in which each learned turn has weight 1 once, as it was written.

    A turn is learned in the conversation of a later one only where that shows before it exactly
    what it saw itself; else it gets one of its own. What was thought aloud is left out.

    Args:
        log: of the run.
        turns: of one trajectory, in order.
        problem: theirs.
        learned: ids of asks whose replies are to be learned.
    """
    left = [turn for turn in turns if turn.ask.id in learned]
    rows: list[Row] = []
    while left:
        last = left[-1]
        chain = [*log.shown(last), last]
        counted = {
            turn.ask.id
            for place, turn in enumerate(chain)
            if any(turn.ask.id == other.ask.id for other in left)
            and list(turn.ask.shown_turns) == [item.ask.id for item in chain[:place]]
            and (turn is last or not turn.ask.instruction)
        }
        # Of a turn that shows itself, or of one that is not found, at least the last one counts.
        counted.add(last.ask.id)
        left = [turn for turn in left if turn.ask.id not in counted]
        rows.append(_conversation(log.begun, problem, chain, counted))
    yield from reversed(rows)


def _conversation(begun: RunStarted, problem: Problem, chain: list[Turn], counted: set[str]) -> Row:
    last = chain[-1]
    said = [{**item, "weight": 0} for item in _prompt(begun, problem, chain[:-1], last)]
    answers = [item for item in said if item["role"] == "assistant"]
    for answer, turn in zip(answers, chain[:-1], strict=True):
        answer["weight"] = int(turn.ask.id in counted)
    assert last.reply is not None
    text = spoken(last.reply.text).strip()
    said.append({"role": "assistant", "content": text, "weight": 1})
    ask = last.ask
    return {
        "id": ask.id,
        "problem": ask.problem,
        "sample": ask.sample,
        "messages": said,
        "turns": [_facts(turn) for turn in chain],
    }


def _prompt(begun: RunStarted, problem: Problem, shown: Sequence[Turn], turn: Turn) -> list[Row]:
    messages = conversation(
        problem, begun.language, shown, turn.ask.instruction, turn.ask.prompt_override
    )
    return [{"role": item.role, "content": item.text} for item in messages]


def _facts(turn: Turn) -> Row:
    item = turn.judgements[0] if turn.judgements else None
    rewards = {name: rule(item) if item is not None else None for name, rule in REWARDS.items()}
    return {
        "id": turn.ask.id,
        "problem": turn.ask.problem,
        "sample": turn.ask.sample,
        "turn": turn.ask.turn,
        "verdict": item.verdict if item is not None else None,
        "speedup": item.speedup if item is not None else None,
        "speedup_low": item.low if item is not None else None,
        "coverage": item.coverage if item is not None else None,
        "findings": list(item.findings) if item is not None else [],
        "labels": list(item.labels) if item is not None else [],
        "rewards": rewards,
        "model": turn.reply.model if turn.reply is not None else "",
    }
