"""Sampling with transformers' continuous batching: rows share a cache of pages, and none waits.

A finished row leaves at once, and a waiting one takes its pages. It is faster than `generate`, and
its samples depend on which rows run together, so a repetition need not be bit-identical.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from typing import Any

import torch
import transformers
from transformers import ContinuousBatchingConfig
from transformers.generation.continuous_batching import ContinuousMixin

from tilewright.errors import ConfigError, PolicyError, boundary
from tilewright.loop.policies.local_model import leased
from tilewright.rl.engines.trl import packed_attention
from tilewright.rl.engines.trl.cache_sizes import (
    PAGE_TOKENS,
    CacheSizes,
    free_memory,
    plan_cache,
    shape_of,
)
from tilewright.rl.engines.trl.sampler import TransformersSampler
from tilewright.rl.presets import SamplingSection
from tilewright.rl.tokens import TokenSample

KEYS_STEP = 16_384
"""Tokens of the cache by which a pass is padded: one CUDA graph serves all lengths between."""
PAGE_FIELD = next(
    field.name
    for field in fields(ContinuousBatchingConfig)
    if field.name in ("page_size", "block_size")
)
"""The size of a page is `block_size` in transformers 5.17, and `page_size` in newer ones."""


class SampledModel(ContinuousMixin):  # type: ignore[misc]
    """A model as continuous batching sees it: its own precision and attention. Lifetime: one batch.

    Autocast belongs to a thread, and continuous batching has a thread of its own. So each pass
    enters it, and the cache has the precision of the passes, not that of the weights.
    """

    def __init__(self, model: Any, precision: str) -> None:  # noqa: ANN401
        self._model = model.get_base_model() if hasattr(model, "get_base_model") else model
        # accelerate replaces `forward` by one in its own precision, and keeps the former one.
        self._forward = getattr(self._model, "_original_forward", self._model.forward)
        self._halved = precision == "bf16"
        self.dtype = torch.bfloat16 if self._halved else torch.float32
        self.generation_config = self._model.generation_config

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._model, name)

    def __call__(self, **given: Any) -> Any:  # noqa: ANN401
        with self._precision():
            return self._forward(**given)

    def eval(self) -> SampledModel:
        """Leave training mode; return this view, which transformers then calls."""
        self._model.eval()
        return self

    def _precision(self) -> AbstractContextManager[Any]:
        if self._halved:
            return torch.autocast(self._model.device.type, torch.bfloat16)
        return torch.autocast(self._model.device.type, enabled=False)

    @contextmanager
    def attending(self) -> Any:  # noqa: ANN401
        """Let the model attend over pages, and as before afterwards."""
        config = self._model.config.get_text_config()
        former = config._attn_implementation
        # The public setter looks for a package of flash attention behind any name with `flash`.
        config._attn_implementation = packed_attention.NAME
        try:
            yield
        finally:
            config._attn_implementation = former


@dataclass
class PagedSampler(TransformersSampler):
    """A `Sampler` that samples with `generate_batch`. Lifetime: one session."""

    sampled_in: str = "fp32"
    """Precision of sampling: `fp32` or `bf16`."""
    cuda_graphs: bool = True
    """Replay the passes as CUDA graphs on a GPU, and prepare one while another runs."""
    note: Callable[[str], None] = lambda _: None
    """Receives the sizes of the cache: at first, and when another number of rows fits."""
    _shown_rows: int | None = None

    def sample(
        self, prompts: Sequence[Sequence[int]], seed: str, sampling: SamplingSection
    ) -> list[TokenSample]:
        training = self.model.training
        view = SampledModel(self.model, self.sampled_in)
        cuda = view.device.type == "cuda"
        # Continuous batching collects garbage at its end, and CUDA graphs may do so at each
        # capture. Freezing excludes the objects of before.
        gc.freeze()
        try:
            with (
                boundary(PolicyError, f"sampling from {self.name}"),
                leased(self.lease, self.on_wait),
                torch.random.fork_rng(devices=[view.device] if cuda else []),
                view.attending(),
            ):
                if cuda:
                    # Continuous batching has streams of its own, and the weights were just updated.
                    torch.cuda.synchronize(view.device)
                    torch.cuda.empty_cache()
                sizes = self._sizes(view, prompts, sampling)
                outputs = view.generate_batch(
                    inputs=[list(row) for row in prompts],
                    generation_config=self._generation(sampling),
                    continuous_batching_config=_batching(
                        sizes, seed, graphs=cuda and self.cuda_graphs
                    ),
                    warmup=False,
                )
        finally:
            self.model.train(training)
            del view
            # The cache hangs on cycles. Evaluations in other processes need its memory.
            gc.collect()
            gc.unfreeze()
            if cuda:
                torch.cuda.empty_cache()
        return self._samples(prompts, list(outputs.values()))

    def _sizes(
        self, view: SampledModel, prompts: Sequence[Sequence[int]], sampling: SamplingSection
    ) -> CacheSizes:
        shape = shape_of(view.config, view.dtype.itemsize)
        lengths = [len(row) for row in prompts]
        free = free_memory(view.device)
        sizes = plan_cache(shape, lengths, sampling.reply_tokens, self.batch_size, free)
        if sizes.rows != self._shown_rows:
            self.note(sizes.text())
            self._shown_rows = sizes.rows
        return sizes

    def _samples(
        self, prompts: Sequence[Sequence[int]], outputs: Sequence[Any]
    ) -> list[TokenSample]:
        failed = next((item.error for item in outputs if item.error is not None), None)
        if failed is not None or len(outputs) != len(prompts):
            reason = failed or f"{len(outputs)} of {len(prompts)} rows came back"
            raise PolicyError(f"sampling from {self.name}, machine.sampler paged: {reason}")
        return [
            self._cut(prompt, item.generated_tokens, item.logprobs)
            for prompt, item in zip(prompts, outputs, strict=True)
        ]


def _batching(sizes: CacheSizes, seed: str, *, graphs: bool) -> Any:  # noqa: ANN401
    digest = hashlib.blake2b(seed.encode(), digest_size=7).digest()
    return ContinuousBatchingConfig(
        **{PAGE_FIELD: PAGE_TOKENS},
        num_blocks=sizes.pages,
        max_batch_tokens=sizes.batch_tokens,
        max_requests_per_batch=sizes.rows,
        # `plan_cache` decides over the memory.
        max_memory_percent=1.0,
        safety_margin=0.0,
        max_blocks_per_request=0,
        allow_block_sharing=False,
        use_cuda_graph=graphs,
        use_async_batching=graphs,
        # 0 is transformers' default.
        q_padding_interval_size=sizes.rows if graphs else 0,
        kv_padding_interval_size=KEYS_STEP if graphs else 0,
        return_logprobs=True,
        seed=int.from_bytes(digest, "big"),
    )


def check_paged(config: Any) -> None:  # noqa: ANN401 - any configuration of transformers
    """Refuse a model over whose layers the paged cache cannot attend.

    Raises:
        ConfigError: the message names `machine.sampler`.
    """
    text = config.get_text_config()
    kinds = set(getattr(text, "layer_types", None) or ["full_attention"])
    window = getattr(text, "sliding_window", None)
    if getattr(text, "layer_types", None) is None and window is not None:
        kinds = {"sliding_attention"}
    wrong = None
    if kinds != {"full_attention"}:
        wrong = f"has layers of {', '.join(sorted(kinds - {'full_attention'}))}"
    elif getattr(text, "attn_logit_softcapping", None):
        wrong = "caps the logits of its attention"
    else:
        kind = transformers.MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
        if not getattr(kind, "_supports_attention_backend", False):
            wrong = "computes attention in a way of its own"
    if wrong is not None:
        raise ConfigError(
            f"machine.sampler is paged, and the model {text.model_type} {wrong}; set "
            "machine.sampler=generate"
        )
