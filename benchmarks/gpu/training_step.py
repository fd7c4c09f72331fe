"""Duration of an RL step: a randomly initialised model of Qwen3-0.6B's shape, all weights trained.

Random weights write nonsense, which is judged without a device. So some replies are a bundled
candidate instead, with the model's own log-probabilities, and are judged on the same GPU.
After SIGINT the program shows the completed steps.
`python -m benchmarks.gpu.training_step --tiny` rehearses all of it on a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.bars import Bar
from tilewright.loop.policies.base import Message
from tilewright.problems.imported_sets import find_problems
from tilewright.records.event_log import read_events
from tilewright.records.events import Stepped, TurnFinished
from tilewright.rl.presets import SamplingSection
from tilewright.rl.tokens import TokenSample
from tilewright.rl.training_config import TrainConfig, load_training

BUNDLED = Path(__file__).parents[2] / "src/tilewright/problems/bundled"
EVERY, EVERY_TINY = 16, 4
"""Of so many replies one is a bundled candidate."""
QWEN3 = {
    "vocab_size": 151_936,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rope_theta": 1e6,
}
QWEN3_4B = {
    **QWEN3,
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
}
TINY = {
    **QWEN3,
    "vocab_size": 8192,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}
SETTINGS = """
preset: paper
require_custom_kernel: {require_custom_kernel}
overrides:
  mismatch: {{low: 0.5, high: 2.0}}
  sampling: {{prompts: {prompts}, rollouts: {rollouts}, turns: {turns}, context_tokens: {context},
              reply_tokens: {reply}}}
  optimizer: {{steps: {steps}}}
data: {{problems: bundled}}
machine: {{device: {device}, precision: {precision}, train_batch_size: 8, sampling_batch_size: 64,
           threads: {threads}, gradient_checkpointing: {gradient_checkpointing}}}
checkpoints: {{every: 1000}}
health: {{stop_unjudged: 1.0}}
settings:
  eval: {{device: {device}, timing: {{max_s: 1.0}}, limits: {{load_s: 60}}}}
  loop: {{max_concurrency: 4, feedback_tokens: 200}}
"""
MAX_S = 480.0
"""Most seconds of the whole part: a command on a GPU machine may take nine minutes."""


class Mixed:
    """The engine's sampler, with a bundled candidate in place of some replies. Lifetime: a run."""

    def __init__(self, own: Any, written: dict[str, str], every: int) -> None:  # noqa: ANN401
        self.name = own.name
        self.every = every
        self.seconds: list[float] = []
        self.tokens: list[int] = []
        self._own = own
        self._written = {source: self._ids(text) for source, text in written.items()}

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Return the ids of a prompt."""
        found: list[int] = self._own.encode(messages)
        return found

    def decode(self, reply: Sequence[int]) -> str:
        """Return the text of a reply."""
        return str(self._own.decode(reply))

    def sample(
        self, prompts: Sequence[Sequence[int]], seed: str, sampling: SamplingSection
    ) -> list[TokenSample]:
        """Sample all replies, and replace some."""
        start = time.monotonic()
        found: list[TokenSample] = self._own.sample(prompts, seed, sampling)
        self.seconds.append(time.monotonic() - start)
        self.tokens.append(sum(len(item.reply) for item in found))
        _say(f"sampled {self.tokens[-1]} tokens in {self.seconds[-1]:.1f} s")
        for place in range(0, len(found), self.every):
            shown = self.decode(prompts[place])
            reply = next((ids for text, ids in self._written.items() if text in shown), None)
            if reply is not None and len(reply) <= sampling.reply_tokens:
                found[place] = self._scored(prompts[place], reply)
        return found

    def _scored(self, prompt: Sequence[int], reply: Sequence[int]) -> TokenSample:
        """Return a given reply, with the model's log-probabilities of it."""
        model = self._own.model
        ids = torch.tensor([[*prompt, *reply]], device=model.device)
        training = model.training
        model.eval()
        try:
            with torch.no_grad(), self._own.precision():
                logits = model(input_ids=ids, logits_to_keep=len(reply) + 1).logits[0, :-1]
        finally:
            model.train(training)
        chosen = logits.float().log_softmax(-1).gather(-1, ids[0, len(prompt) :, None])[:, 0]
        return TokenSample(tuple(prompt), tuple(reply), tuple(chosen.tolist()), "stop")

    def _ids(self, text: str) -> list[int]:
        tokenizer = self._own.tokenizer
        found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
        return [*found, tokenizer.eos_token_id]


def written(device: str) -> dict[str, str]:
    """Return a bundled candidate as a reply, by the source of its problem."""
    kind = "triton_*.py" if device == "cuda" else "torch_*.py"
    found = {}
    for problem in find_problems("bundled", Path("none")):
        folder = BUNDLED / problem.id.rpartition("/")[2] / "candidates"
        for path in sorted(folder.glob(kind))[:1]:
            text = path.read_text(encoding="utf-8")
            found[problem.source.text.strip()] = f"```python\n{text}\n```\n"
    return found


def make_model(
    folder: Path,
    shape: dict[str, Any],
    texts: Sequence[str],
    device: str = "cpu",
    weights: torch.dtype = torch.float32,
) -> None:
    """Write a model of random weights, and a tokenizer of what our own sources consist of.

    `weights` is the precision of the file; a training loads it into fp32.
    """
    import transformers

    from tilewright.rl.engines.trl import models
    from tilewright.rl.training_config import FreshSection

    section = FreshSection(vocabulary=min(8000, shape["vocab_size"] - 8), tokens="bytes")
    tokenizer = models.fresh_tokenizer(texts, section)
    config = transformers.Qwen3Config(
        **shape,
        tie_word_embeddings=True,
        max_position_embeddings=32768,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    with torch.device(device):
        model = transformers.Qwen3ForCausalLM(config).to(weights)
    models.save(model, tokenizer, folder)


def train_some(
    shape: dict[str, Any],
    changes: Sequence[str] = (),
    *,
    tiny: bool,
    weights: torch.dtype = torch.float32,
    note: Callable[[str], None],
    prepare: Callable[[Any], None] = lambda _: None,
) -> dict[str, Any]:
    """Train a model of this shape for some steps; return what each took, and the memory.

    `changes` are settings on top of those of the benchmark. `weights` is the precision in which the
    model is stored before the training. `prepare` receives the sampler before its first use.
    """
    from tilewright.rl.engines.trl.reinforce import train_rl

    start = time.monotonic()
    device = "cpu" if tiny else "cuda"
    folder = Path(tempfile.mkdtemp(prefix="tilewright-train-"))
    sources = [path.read_text(encoding="utf-8") for path in sorted(BUNDLED.glob("*/*.py"))]
    texts = [*sources, *written(device).values()]
    make_model(folder / "model", shape, texts, device, weights)
    settings = _settings(folder, device, changes, tiny=tiny)
    mixed: list[Mixed] = []

    def wrap(own: Any) -> Mixed:  # noqa: ANN401
        prepare(own)
        mixed.append(Mixed(own, written(device), EVERY_TINY if tiny else EVERY))
        return mixed[0]

    note(f"model made after {time.monotonic() - start:.0f} s")
    run_folder = folder / "run"
    run_folder.mkdir()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        train_rl(settings, run_folder, note, _told(start), wrap)
    except KeyboardInterrupt:
        note("stopped: what follows is of the steps that are done")
    table = _table(run_folder, mixed[0], settings)
    table["whole_s"] = time.monotonic() - start
    if device == "cuda":
        table["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
        table["reserved_bytes"] = torch.cuda.max_memory_reserved()
        table["device"] = torch.cuda.get_device_name()
    return table


def run(out: Path, *, tiny: bool = False) -> list[Bar]:
    """Train for some steps; write what they took into `train.json`."""
    warnings.filterwarnings("ignore")
    table = train_some(TINY if tiny else QWEN3, tiny=tiny, note=_say)
    (out / "train.json").write_text(json.dumps(table, indent=1), encoding="utf-8")
    return _bars(table, table["whole_s"])


def _settings(folder: Path, device: str, changes: Sequence[str], *, tiny: bool) -> TrainConfig:
    text = SETTINGS.format(
        prompts=2 if tiny else 4,
        turns=1 if tiny else 2,
        rollouts=4 if tiny else 8,
        context=4096 if tiny else 6144,
        reply=400 if tiny else 512,
        steps=1 if tiny else 2,
        threads=1 if tiny else 0,
        require_custom_kernel="false" if tiny else "true",
        device=device,
        precision="fp32" if tiny else "bf16",
        gradient_checkpointing="false" if tiny else "true",
    )
    path = folder / "train.yaml"
    path.write_text(text, encoding="utf-8")
    return load_training(path, [f"model.path={folder / 'model'}", *changes])


def _say(text: str) -> None:
    print(text, flush=True)


def _told(start: float) -> Callable[..., None]:
    """Return what prints the stages of the evaluations."""

    def told(kind: str, shown: object) -> None:
        if kind == "stage":
            print(f"{time.monotonic() - start:6.1f} s {shown}", flush=True)

    return told


def _table(folder: Path, mixed: Mixed, settings: TrainConfig) -> dict[str, Any]:
    events = list(read_events(folder))
    steps = [event.figures for event in events if isinstance(event, Stepped)]
    turns = [event.turn for event in events if isinstance(event, TurnFinished)]
    each = settings.estimator().sampling.turns
    rows = []
    for number, figures in enumerate(steps):
        sampling = sum(mixed.seconds[number * each : (number + 1) * each])
        tokens = sum(mixed.tokens[number * each : (number + 1) * each])
        learning = (figures["seconds/log_probs"] or 0.0) + (figures["seconds/update"] or 0.0)
        mine = [turn for turn in turns if turn.ask.id.startswith(f"step{number:05}/")]
        replies = [turn.reply for turn in mine if turn.reply is not None]
        seen = sum(reply.prompt_tokens + reply.reply_tokens for reply in replies)
        rows.append(
            {
                "sampling_s": sampling,
                "judging_s": (figures["seconds/rollouts"] or 0.0) - sampling,
                "log_probs_s": figures["seconds/log_probs"],
                "estimator_s": figures["seconds/estimator"],
                "update_s": figures["seconds/update"],
                "sampled_tokens_per_s": tokens / sampling,
                "trained_tokens_per_s": seen / learning,
                "turns": len(mine),
                "judged_on_device": sum(bool(t.judgements[0].report) for t in mine),
                "unjudged": figures["unjudged"],
                "correct": figures["correct"],
                "kept_mismatch": figures["kept_mismatch"],
                "within_0.001": figures["mismatch/within_0.001"],
                "mean_log": figures["mismatch/mean_log"],
                "most_log": figures["mismatch/most_log"],
            }
        )
    return {"steps": rows}


def _bars(table: dict[str, Any], seconds: float) -> list[Bar]:
    bars = []
    for number, row in enumerate(table["steps"], 1):
        text = ", ".join(
            f"{name} {value:.3g}" for name, value in row.items() if isinstance(value, int | float)
        )
        judged = row["judged_on_device"]
        bars.append(Bar(f"train: step {number}", "real kernels judged", text, judged > 0))
    memory = table.get("peak_memory_bytes")
    text = f"{seconds:.0f} s" + (f", peak {memory / 2**30:.1f} GiB" if memory else "")
    return [*bars, Bar("train: all of it", f"under {MAX_S:.0f} s", text, seconds < MAX_S)]


def main() -> None:
    """Rehearse on a CPU, or measure on a GPU."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu.training_step", description=__doc__
    )
    parser.add_argument("--tiny", action="store_true", help="a model of two layers, on the CPU")
    options = parser.parse_args()
    out = Path(os.environ.get("OUT", "out"))
    out.mkdir(parents=True, exist_ok=True)
    for bar in run(out, tiny=options.tiny):
        print(bar.row())


if __name__ == "__main__":
    main()
