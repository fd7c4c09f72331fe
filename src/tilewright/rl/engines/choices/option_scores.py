"""Token log-probabilities of all options of a state in one pass of the model.

A prompt and its options are one sequence. The attention mask lets an option see the prompt and its
own earlier tokens. Positions continue from the prompt, so each score is that of the option alone.
Transformers takes such a mask as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tilewright.rl.choices.choice_rows import ChoicePrompt


@dataclass(frozen=True, slots=True)
class OptionScores:
    """N states with at most K options of at most L tokens."""

    logprobs: Tensor
    """Floating (N, K, L), with gradient."""
    tokens: Tensor
    """Tokens that exist, bool (N, K, L)."""
    words: Tensor
    """Words of each option, int64 (N, K)."""
    legal: Tensor
    """Options that exist, bool (N, K)."""
    states: Tensor
    """The model's last hidden state of the prompt, floating (N, H), without gradient."""


def score_options(model: Any, states: Sequence[ChoicePrompt], pad: int) -> OptionScores:  # noqa: ANN401 - any model
    """Return the scores of states that pass the model together; `pad` fills short rows."""
    device = model.get_input_embeddings().weight.device
    longest = max(len(item.prompt) + sum(map(len, item.options)) for item in states)
    shape = len(states), longest
    ids = torch.full(shape, pad, dtype=torch.int64)
    positions = torch.zeros(shape, dtype=torch.int64)
    seen = torch.eye(longest, dtype=torch.bool).repeat(len(states), 1, 1)
    for row, state in enumerate(states):
        _place(state, ids[row], positions[row], seen[row])
    hidden = _hidden(model, ids.to(device), positions.to(device), seen.to(device))
    ends = torch.tensor([len(item.prompt) - 1 for item in states], device=device)
    last = hidden[torch.arange(len(states), device=device), ends].detach()
    places, targets, tokens = (item.to(device) for item in _targets(states))
    rows = torch.arange(len(states), device=device)[:, None].expand(-1, places[0].numel())
    chosen = hidden[rows, places.flatten(1)].reshape(*places.shape, -1)
    logits = model.get_output_embeddings()(chosen[tokens])
    # A softmax in half precision loses small probabilities.
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
    found = precise.log_softmax(-1).gather(-1, targets[tokens][:, None])[:, 0]
    logprobs = torch.zeros(places.shape, dtype=found.dtype, device=device)
    logprobs = logprobs.masked_scatter(tokens, found)
    words = torch.zeros(places.shape[:2], dtype=torch.int64)
    for row, state in enumerate(states):
        words[row, : len(state.words)] = torch.tensor(state.words)
    return OptionScores(logprobs, tokens, words.to(device), tokens.any(-1), last)


def _place(state: ChoicePrompt, ids: Tensor, positions: Tensor, seen: Tensor) -> None:
    """Write a state into a row of tokens (S,), positions (S,) and the mask of attention (S, S)."""
    count = len(state.prompt)
    ids[:count] = torch.tensor(state.prompt)
    positions[:count] = torch.arange(count)
    seen[:count, :count] = torch.ones(count, count, dtype=torch.bool).tril()
    start = count
    for option in state.options:
        end, size = start + len(option), len(option)
        ids[start:end] = torch.tensor(option)
        positions[start:end] = torch.arange(count, count + size)
        seen[start:end, :count] = True
        seen[start:end, start:end] = torch.ones(size, size, dtype=torch.bool).tril()
        start = end


def _hidden(model: Any, ids: Tensor, positions: Tensor, seen: Tensor) -> Tensor:  # noqa: ANN401
    """Return the last hidden states, floating (N, S, H)."""
    dtype = model.get_input_embeddings().weight.dtype
    hidden = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
    mask = hidden.masked_fill(~seen, torch.finfo(dtype).min)[:, None]
    made = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        use_cache=False,
        output_hidden_states=True,
        # The head is applied below, to the tokens before those of the options.
        logits_to_keep=1,
    )
    found: Tensor = made.hidden_states[-1]
    return found


def _targets(states: Sequence[ChoicePrompt]) -> tuple[Tensor, Tensor, Tensor]:
    """Return for each token of each option the place before it, its id, and whether it exists.

    The place before the first token of an option is the end of the prompt. All are (N, K, L).
    """
    most = max(len(item.options) for item in states)
    longest = max(len(option) for item in states for option in item.options)
    places = torch.zeros(len(states), most, longest, dtype=torch.int64)
    ids, exists = torch.zeros_like(places), torch.zeros(places.shape, dtype=torch.bool)
    for row, state in enumerate(states):
        start = len(state.prompt)
        for number, option in enumerate(state.options):
            size = len(option)
            before = torch.arange(start - 1, start - 1 + size)
            before[0] = len(state.prompt) - 1
            places[row, number, :size] = before
            ids[row, number, :size] = torch.tensor(option)
            exists[row, number, :size] = True
            start += size
    return places, ids, exists
