"""The sampler `paged` against `generate`: random weights of Qwen3-0.6B's shape, one GPU.

Each part prints its lines and writes them to `OUT` as it ends, so a run that is cut off gives the
figures of the parts before. `LIMIT` are the seconds of the whole.
`python -m benchmarks.gpu.paged_sampling --tiny` rehearses all of it on a CPU.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.bars import Bar
from benchmarks.gpu.training_step import QWEN3, QWEN3_4B, TINY, train_some
from tilewright.errors import PolicyError
from tilewright.rl.mismatch_sampling import mean_log_ratios, ratios, reject
from tilewright.rl.presets import SamplingSection
from tilewright.rl.tokens import TokenSample

WANTED_RATIO = 3.0
SAME_KERNELS, ACROSS_KERNELS = 1e-4, 1e-3
"""Largest differences of log-probabilities in fp32."""
LORA_S = 170.0
"""Seconds that the long replies leave for the step of adapters."""
ORDER = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""torch's attention kernels: the first that takes a call is used."""
PRECISIONS: tuple[Literal["fp32", "bf16"], ...] = ("fp32", "bf16")
GIB = 2**30


@dataclass(frozen=True)
class Sizes:
    """What is sampled."""

    device: str
    shape: dict[str, Any]
    prompts: int = 64
    prompt_tokens: int = 1000
    reply_tokens: int = 512
    exact_tokens: int = 128
    long_rows: int = 32
    long_tokens: int = 8192


FULL = Sizes("cuda", QWEN3)
SMALL = Sizes("cpu", TINY, 4, 60, 24, 8, 2, 64)


class Report:
    """The lines of the parts that have ended. Lifetime: one run of the benchmark."""

    def __init__(self, out: Path) -> None:
        self.bars: list[Bar] = []
        self.graphs = True
        """Whether CUDA graphs work; else all parts go on without."""
        self._file = out / "paged.json"

    def add(self, name: str, wanted: str, seen: str, held: bool, **details: object) -> None:
        """Print a line, and write all lines so far."""
        bar = Bar(f"paged: {name}", wanted, seen, held, details)
        self.bars.append(bar)
        print(bar.row(), flush=True)
        lines = [each.__dict__ for each in self.bars]
        self._file.write_text(json.dumps(lines, indent=1), encoding="utf-8")


def make_model(sizes: Sizes) -> Any:  # noqa: ANN401 - untyped package
    """Return a model of random weights in fp32 on the device."""
    import transformers

    end = sizes.shape["vocab_size"] - 1
    config = transformers.Qwen3Config(
        **sizes.shape,
        tie_word_embeddings=True,
        max_position_embeddings=32768,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    with torch.device(sizes.device):
        return transformers.Qwen3ForCausalLM(config).eval()


def make_prompts(sizes: Sizes, rows: int) -> list[list[int]]:
    """Return prompts of random tokens, all of one length, as without padding."""
    drawn = torch.Generator().manual_seed(1)
    shape = (rows, sizes.prompt_tokens)
    return torch.randint(1, sizes.shape["vocab_size"] - 1, shape, generator=drawn).tolist()


def make_samplers(
    sizes: Sizes,
    model: Any,  # noqa: ANN401
    precision: Literal["fp32", "bf16"],
    rows: int,
    graphs: bool,
) -> dict[str, Any]:
    """Return both samplers, with one model and one precision."""
    from tilewright.rl.engines.trl.sampler_choice import make_sampler
    from tilewright.rl.training_config import MachineSection

    # The samplers read these two of a tokenizer.
    tokenizer = SimpleNamespace(pad_token_id=0, eos_token_id=sizes.shape["vocab_size"] - 1)
    context: Callable[[], AbstractContextManager[Any]] = nullcontext
    if precision == "bf16":
        context = lambda: torch.autocast(sizes.device, torch.bfloat16)  # noqa: E731
    kinds: tuple[Literal["generate", "paged"], ...] = ("generate", "paged")
    found: dict[str, Any] = {}
    for kind in kinds:
        machine = MachineSection(sampler=kind, precision=precision, sampling_batch_size=rows)
        found[kind] = make_sampler(
            machine, model, tokenizer, None, context, "random weights", note=_say
        )
    found["paged"].cuda_graphs = graphs
    return found


def probe(sizes: Sizes, model: Any, report: Report) -> None:  # noqa: ANN401
    """Find out whether CUDA graphs work here, with a few tokens in both precisions."""
    prompts = make_prompts(sizes, 3)
    for precision in PRECISIONS:
        made = make_samplers(sizes, model, precision, 2, report.graphs)["paged"]
        try:
            made.sample(prompts, "probe", SamplingSection(reply_tokens=4))
        except PolicyError as error:
            report.add(f"CUDA graphs in {precision}", "work", str(error)[:300], False)
            report.graphs = False


def repeated_heads(
    module: Any,  # noqa: ANN401
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _: torch.Tensor | None,
    scaling: float,
    **__: object,
) -> tuple[torch.Tensor, None]:
    """Attend with as many key heads as query heads: torch's memory-efficient kernel needs them."""
    keys, values = (each.repeat_interleave(module.num_key_value_groups, 1) for each in (key, value))
    found = scaled_dot_product_attention(query, keys, values, is_causal=True, scale=scaling)
    return found.transpose(1, 2).contiguous(), None


@torch.no_grad()
def forward(
    model: Any,  # noqa: ANN401
    samples: Sequence[TokenSample],
    backends: list[SDPBackend],
    precision: str,
) -> torch.Tensor:
    """Return log-probabilities of equally long replies without a cache, (rows, reply), fp32."""
    found = []
    half = precision == "bf16"
    for start in range(0, len(samples), 4):
        rows = samples[start : start + 4]
        ids = torch.tensor([row.prompt + row.reply for row in rows], device=model.device)
        reply = len(rows[0].reply)
        with (
            torch.autocast(model.device.type, torch.bfloat16, enabled=half),
            sdpa_kernel(backends, set_priority=True),
        ):
            logits = model(input_ids=ids, use_cache=False, logits_to_keep=reply + 1).logits
        logs = logits[:, :-1].float().log_softmax(-1)
        found.append(logs.gather(-1, ids[:, -reply:, None])[..., 0])
    return torch.cat(found)


def whole(samples: Sequence[TokenSample]) -> list[TokenSample]:
    """Return the samples that reached the limit: random weights end a reply early very rarely."""
    longest = max(len(item.reply) for item in samples)
    return [item for item in samples if len(item.reply) == longest]


def exact(sizes: Sizes, model: Any, report: Report) -> None:  # noqa: ANN401
    """Compare log-probabilities in fp32 with those of a forward pass."""
    from transformers import AttentionInterface

    prompts = make_prompts(sizes, sizes.prompts)
    sampling = SamplingSection(reply_tokens=sizes.exact_tokens)
    made = make_samplers(sizes, model, "fp32", sizes.prompts, report.graphs)["paged"]
    samples = whole(made.sample(prompts, "exact", sampling))
    wrote = torch.tensor([item.logprobs for item in samples], device=model.device)
    # On a GPU both compute with torch's memory-efficient kernel, which takes fp32.
    same = SDPBackend.EFFICIENT_ATTENTION if sizes.device == "cuda" else SDPBackend.MATH
    others = [SDPBackend.MATH] if sizes.device == "cuda" else [SDPBackend.FLASH_ATTENTION]
    AttentionInterface.register("repeated_heads", repeated_heads)
    model.set_attn_implementation("repeated_heads")
    shape = f"{len(samples)} replies of {wrote.shape[1]} tokens"
    for name, backends, wanted in (
        ("same kernels", [same], SAME_KERNELS),
        ("across kernels", others, ACROSS_KERNELS),
    ):
        apart = (forward(model, samples, backends, "fp32") - wrote).abs()
        most, mean = float(apart.max()), float(apart.mean())
        seen = f"{most:.2e}, mean {mean:.1e}; {shape}"
        report.add(f"log-probabilities in fp32, {name}", f"{wanted:.0e}", seen, most <= wanted)


def speed(sizes: Sizes, model: Any, report: Report) -> None:  # noqa: ANN401
    """Measure the tokens per second of both samplers in bf16, and what mismatch rejection keeps."""
    from benchmarks.gpu.paged_watch import Watch

    prompts, rates = make_prompts(sizes, sizes.prompts), {}
    sampling = SamplingSection(reply_tokens=sizes.reply_tokens)
    warming = sampling.model_copy(update={"reply_tokens": min(16, sizes.reply_tokens)})
    for kind, made in make_samplers(sizes, model, "bf16", sizes.prompts, report.graphs).items():
        with sdpa_kernel(ORDER, set_priority=True):
            start = time.monotonic()
            made.sample(prompts, "warm", warming)
            warm = time.monotonic() - start
            _forget()
            with Watch(_say) as watch:
                start = time.monotonic()
                samples = made.sample(prompts, "speed", sampling)
                seconds = time.monotonic() - start
        tokens = sum(len(item.reply) for item in samples)
        rates[kind] = tokens / (seconds - watch.capture_s)
        report.add(
            f"{kind}, {sizes.prompts} prompts of {sizes.prompt_tokens}, replies of "
            f"{sizes.reply_tokens}, bf16",
            "printed",
            f"{rates[kind]:.0f} tokens/s; {seconds:.1f} s with {watch.captures} CUDA graphs in "
            f"{watch.capture_s:.1f} s, which are left out; with them {tokens / seconds:.0f} "
            f"tokens/s; warm-up call {warm:.1f} s; {_memory(sizes.device)}",
            True,
        )
        keep(model, whole(samples), kind, report)
    ratio = rates["paged"] / rates["generate"]
    rehearsed = sizes.device == "cpu"
    report.add(
        "speed of paged over generate, torch's own attention kernels and bf16 in both",
        f"at least {WANTED_RATIO:.0f} times",
        f"{ratio:.2f} times",
        ratio >= WANTED_RATIO or rehearsed,
    )


def keep(model: Any, samples: Sequence[TokenSample], kind: str, report: Report) -> None:  # noqa: ANN401
    """Print what mismatch rejection keeps of replies in bf16, with the bounds of the paper."""
    before = forward(model, samples, ORDER, "bf16").cpu()[:, None]
    wrote = torch.tensor([item.logprobs for item in samples])[:, None]
    generated = torch.ones_like(wrote, dtype=torch.bool)
    kept = reject(before, wrote, generated)
    means = mean_log_ratios(ratios(before, wrote, generated), level="trajectory").values
    rows = int((kept.left > 0).sum())
    report.add(
        f"mismatch rejection of {kind} in bf16",
        "printed",
        f"keeps {rows} of {len(samples)} replies ({rows / len(samples):.1%}); mean log ratio up "
        f"to {float(means.abs().max()):.1e}, of a token {float((before - wrote).abs().max()):.2g}",
        True,
    )


def long(sizes: Sizes, model: Any, report: Report, left: float) -> None:  # noqa: ANN401
    """Sample long replies for at most `left` seconds: whether they fit, and how fast."""
    from benchmarks.gpu.paged_watch import Watch

    made = make_samplers(sizes, model, "bf16", sizes.long_rows, report.graphs)["paged"]
    sampling = SamplingSection(reply_tokens=sizes.long_tokens)
    _forget()
    start, wrote, end = time.monotonic(), 0, ""
    with Watch(_say, left) as watch:
        try:
            samples = made.sample(make_prompts(sizes, sizes.long_rows), "long", sampling)
            wrote = sum(len(item.reply) for item in samples)
        except PolicyError as error:
            # The first passes read the prompts; one pass more or less is no matter here.
            wrote, end = watch.passes * sizes.long_rows, f"; {error}"[:200]
    seconds = time.monotonic() - start
    report.add(
        f"replies of {sizes.long_tokens}, {sizes.long_rows} rows, bf16",
        "fits in the memory",
        f"{wrote} tokens, {wrote / (seconds - watch.capture_s):.0f} tokens/s; {seconds:.0f} s with "
        f"{watch.captures} CUDA graphs in {watch.capture_s:.1f} s; {_memory(sizes.device)}{end}",
        not end,
    )


def lora(sizes: Sizes, report: Report) -> None:
    """Train one step of adapters with the sampler `paged`, and print its parts."""
    tiny = sizes.device == "cpu"
    _forget()
    changes = ("model.lora.rank=16", "machine.sampler=paged", "overrides.optimizer.steps=1")
    start = time.monotonic()
    table = train_some(
        TINY if tiny else QWEN3_4B,
        changes,
        tiny=tiny,
        weights=torch.bfloat16,
        note=_say,
        prepare=lambda own: setattr(own, "cuda_graphs", report.graphs),
    )
    (row,) = table["steps"]
    parts = ", ".join(f"{name} {value:.3g}" for name, value in row.items() if value is not None)
    report.add(
        "LoRA, shape of 4B, a step of 4 prompts x 8 rollouts x 2 turns",
        "runs",
        f"{parts}; {_memory(sizes.device)}; whole {time.monotonic() - start:.0f} s",
        True,
    )


def verl(report: Report) -> None:
    """Tell whether verl's packages are here; a bar is not made of it."""
    absent = [name for name in ("verl", "vllm", "ray") if importlib.util.find_spec(name) is None]
    reason = f"not run: {', '.join(absent)} not installed, and the machine has no network"
    report.add("verl on one GPU", "reported", reason if absent else "not run here", True)


PARTS = ("probe", "exact", "speed", "verl", "long", "lora")


def run(out: Path, *, tiny: bool = False, parts: Sequence[str] = PARTS) -> list[Bar]:
    """Run the parts one after the other, and write `paged.json` after each line."""
    warnings.filterwarnings("ignore")
    began, limit = time.monotonic(), float(os.environ.get("LIMIT", "500"))
    sizes, report = SMALL if tiny else FULL, Report(out)
    for part in sorted(parts, key=PARTS.index):
        start = time.monotonic()
        left = limit - (start - began)
        try:
            if part == "verl":
                verl(report)
            elif part == "lora":
                lora(sizes, report)
            else:
                model = make_model(sizes)
                _say(f"{part}: model made after {time.monotonic() - start:.0f} s")
                if part == "long":
                    reserved = LORA_S if "lora" in parts else 0.0
                    long(sizes, model, report, left - reserved - 20)
                else:
                    {"probe": probe, "exact": exact, "speed": speed}[part](sizes, model, report)
        except Exception as error:  # noqa: BLE001 - the other parts have figures to give
            report.add(part, "runs", f"{type(error).__name__}: {error}"[:300], False)
        _say(f"{part}: {time.monotonic() - start:.0f} s")
        model = None
        _forget()
    return report.bars


def _memory(device: str) -> str:
    if device != "cuda":
        return "memory of the GPU not measured"
    peak, held = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
    return f"peak {peak / GIB:.1f} GiB allocated, {held / GIB:.1f} GiB reserved"


def _forget() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    """Rehearse on a CPU, or measure on a GPU."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu.paged_sampling", description=__doc__
    )
    parser.add_argument("--tiny", action="store_true", help="a model of two layers, on the CPU")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    out = Path(os.environ.get("OUT", "out"))
    out.mkdir(parents=True, exist_ok=True)
    run(out, tiny=options.tiny, parts=options.only)


if __name__ == "__main__":
    main()
