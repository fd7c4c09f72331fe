"""The tiny model of the golden test of engines, and its log-probabilities. It imports none of ours.

Its weights are those of numpy's generator, so that every version of transformers has the same.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch
import transformers

VOCABULARY, END = 64, 0
BEFORE, AFTER = 0.12, 0.22
"""Spread of the weights before the step, and of what moves them, so that ratios are clipped."""


def draw(name: str, shape: tuple[int, ...], spread: float, what: str) -> np.ndarray:
    """Return random numbers of a name, float32; the same on every machine."""
    seed = zlib.crc32(f"{what}/{name}".encode())
    return (spread * np.random.RandomState(seed).standard_normal(shape)).astype(np.float32)


def tiny_model() -> torch.nn.Module:
    """Return the model before the step, fp32."""
    config = transformers.Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=128,
        tie_word_embeddings=False,
        eos_token_id=END,
        pad_token_id=END,
        bos_token_id=None,
        attn_implementation="eager",
    )
    model = transformers.Qwen3ForCausalLM(config).float()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            numbers = torch.from_numpy(draw(name, tuple(weight.shape), BEFORE, "before"))
            weight.copy_(1.0 + numbers if weight.dim() == 1 else numbers)
    return model


def movement(name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """Return what is added to a weight before the step is taken."""
    return torch.from_numpy(draw(name, shape, AFTER * BEFORE, "after"))


def logprobs(model: torch.nn.Module, prompt: list[int], reply: list[int]) -> torch.Tensor:
    """Return the log-probabilities of a reply, one row without padding, float64 (n,)."""
    logits = model(input_ids=torch.tensor([prompt + reply])).logits[0, len(prompt) - 1 : -1]
    chosen = torch.tensor(reply)[:, None]
    return torch.log_softmax(logits.double(), -1).gather(-1, chosen)[:, 0]
