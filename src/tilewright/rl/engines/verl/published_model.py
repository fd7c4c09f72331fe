"""The model that a training with verl leaves: the weights of its last checkpoint, in RUN/model."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from tilewright.errors import RecordError, writing
from tilewright.rl.training_folder import replaced_folder

FOLDER = "model"
"""Folder of the trained model in a run folder."""
NEWEST = "latest_checkpointed_iteration.txt"
"""verl's file with the number of the newest complete checkpoint."""
BASE, LAYER = "base_model.model.", ".base_layer."
"""Parts of the name of a weight that has an adapter."""
SMALL, LARGE = ".lora_A.default.weight", ".lora_B.default.weight"


def publish(folder: Path, initial: Path, adapter_scale: float | None) -> Path:
    """Write the weights of the last checkpoint to RUN/model; return that folder.

    `initial` is the folder of the initial model, whose other files are copied. `adapter_scale` is
    alpha / rank of LoRA adapters, which are merged into the weights; `None`: there are none.

    Raises:
        RecordError: verl left no checkpoint, or one without weights.
    """
    source = _newest(folder / "checkpoints")
    target = folder / FOLDER
    with writing(target), replaced_folder(target) as fresh:
        if adapter_scale is None:
            shutil.copytree(source, fresh)
        else:
            _write_merged(source, initial, fresh, adapter_scale)
    return target


def _newest(checkpoints: Path) -> Path:
    newest = checkpoints / NEWEST
    if not newest.exists():
        raise RecordError(f"{checkpoints}: verl left no checkpoint")
    step = newest.read_text(encoding="utf-8").strip()
    return checkpoints / f"global_step_{step}" / "actor" / "huggingface"


def _write_merged(source: Path, initial: Path, target: Path, scale: float) -> None:
    from safetensors.torch import load_file, save_file

    parts = sorted(source.glob("*.safetensors"))
    if not parts:
        raise RecordError(f"{source}: the checkpoint has no weights")
    found = {name: value for part in parts for name, value in load_file(part).items()}
    weights = "*.safetensors*"
    shutil.copytree(initial, target, ignore=shutil.ignore_patterns(weights, "*.bin*"))
    merged = merge_adapters(found, scale)
    save_file(merged, target / "model.safetensors", metadata={"format": "pt"})


def merge_adapters(state: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """Return W + scale B A of each weight with an adapter, and every other weight as it is.

    Hu et al. 2021 (LoRA), section 4.1: W is (out, in), B (out, rank), A (rank, in), all floating.
    Sums are in float32, and the result has the dtype of W.
    """
    merged = {}
    for name, value in state.items():
        if SMALL in name or LARGE in name:
            continue
        plain = name.removeprefix(BASE)
        if LAYER not in plain:
            merged[plain] = value
            continue
        stem = name.partition(LAYER)[0]
        whole = value
        if name.endswith(".weight") and f"{stem}{SMALL}" in state:
            product = state[f"{stem}{LARGE}"].float() @ state[f"{stem}{SMALL}"].float()
            whole = torch.add(value.float(), product, alpha=scale).to(value.dtype)
        merged[plain.replace(LAYER, ".")] = whole.contiguous()
    return merged
