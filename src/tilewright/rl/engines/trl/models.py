"""Models and tokenizers: loaded from a folder, or created with random weights."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from tilewright.errors import ConfigError, boundary
from tilewright.loop.policies.local_model import load_causal_model
from tilewright.rl.training_config import FreshSection, LoraSection, TrainConfig
from tilewright.rl.training_folder import replaced_folder

FOLDER = "model"
"""Folder of the trained model in a run folder."""
END, PAD = "<|end|>", "<|pad|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>"
    "{% if message['role'] != 'assistant' %}{{ message['content'] }}"
    "{% elif message.get('weight', 1) %}"
    "{% generation %}{{ message['content'] }}<|end|>{% endgeneration %}"
    "{% else %}{{ message['content'] }}<|end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
"""Marks the tokens of the loss: replies of weight 1, with their end token."""


def fresh_tokenizer(texts: Iterable[str], section: FreshSection) -> Any:  # noqa: ANN401 - untyped package
    """Return a byte-level BPE tokenizer that is trained on these texts."""
    made = Tokenizer(models.BPE())
    cut: list[Any] = [pre_tokenizers.ByteLevel(add_prefix_space=False)]
    if section.tokens == "lines":
        # No merge crosses the end of a line.
        lines = pre_tokenizers.Split(Regex("\n"), "merged_with_previous")
        cut = [lines, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    made.pre_tokenizer = pre_tokenizers.Sequence(cut)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=section.vocabulary,
        special_tokens=[PAD, END, *ROLES],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=END, pad_token=PAD, chat_template=TEMPLATE
    )


def check_fresh(section: FreshSection) -> None:
    """Refuse sizes from which no model can be made."""
    if section.hidden % section.heads:
        raise ConfigError(
            f"model.from_scratch.hidden {section.hidden} is no multiple of heads {section.heads}"
        )


def fresh_model(section: FreshSection, tokenizer: Any, seed: int) -> Any:  # noqa: ANN401
    """Return a model of Qwen3's architecture with random weights, fp32."""
    check_fresh(section)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=section.hidden,
        intermediate_size=3 * section.hidden,
        num_hidden_layers=section.layers,
        num_attention_heads=section.heads,
        num_key_value_heads=section.heads,
        head_dim=section.hidden // section.heads,
        max_position_embeddings=section.positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return transformers.Qwen3ForCausalLM(config)


def load_tokenizer(path: str) -> Any:  # noqa: ANN401
    """Return the tokenizer in a folder."""
    with boundary(ConfigError, f"model.path {path}"):
        tokenizer: Any = transformers.AutoTokenizer.from_pretrained(path)
    if tokenizer.chat_template is None:
        raise ConfigError(f"model.path {path}: its tokenizer has no chat template")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_shape(path: str) -> Any:  # noqa: ANN401
    """Return the configuration of the model in a folder, without its weights."""
    with boundary(ConfigError, f"model.path {path}"):
        return transformers.AutoConfig.from_pretrained(path)


def load_model(path: str) -> Any:  # noqa: ANN401
    """Return the model in a folder, with weights in fp32 whatever their stored precision."""
    return load_causal_model(path, torch.float32, ConfigError, f"model.path {path}")


def adapters(section: LoraSection) -> Any:  # noqa: ANN401
    """Return the configuration of the LoRA adapters; `None`: all weights are trained."""
    if not section.rank:
        return None
    from peft import LoraConfig

    names = [name.strip() for name in section.targets.split(",")]
    return LoraConfig(
        r=section.rank,
        lora_alpha=section.alpha,
        lora_dropout=0.0,
        target_modules=names[0] if len(names) == 1 else names,
        task_type="CAUSAL_LM",
    )


def save(model: Any, tokenizer: Any, folder: Path) -> Path:  # noqa: ANN401
    """Write a model for the policy `local:FOLDER`; adapters are merged into its weights.

    The folder appears when all of its files are written, and an old one stays until then.
    """
    whole = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
    with replaced_folder(folder) as fresh:
        whole.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
    return folder


def initial_model(config: TrainConfig) -> str:
    """Return the folder of the initial model of a training."""
    path = config.model.path
    if not path:
        raise ConfigError(
            "model.path is empty: give the folder of a model; train sft leaves one in RUN/model"
        )
    if not Path(path).is_dir():
        raise ConfigError(f"model.path {path!r} is no folder; train sft writes one to RUN/model")
    return path
