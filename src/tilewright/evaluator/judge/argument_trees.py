"""Trees of arguments and outputs: lists, tuples, dicts and objects with tensors as leaves."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tilewright.evaluator.judge.number_formats import same_values


def leaves_of(value: Any) -> list[Any]:  # noqa: ANN401 - a tree
    """Return the leaves of a tree in order."""
    if isinstance(value, SimpleNamespace):
        value = vars(value)
    items = list(value.values()) if isinstance(value, dict) else value
    if isinstance(items, list | tuple):
        return [leaf for item in items for leaf in leaves_of(item)]
    return [value]


def tensors(value: Any) -> list[torch.Tensor]:  # noqa: ANN401
    """Return the tensors of a tree of arguments."""
    return [leaf for leaf in leaves_of(value) if isinstance(leaf, torch.Tensor)]


def copied(value: Any) -> Any:  # noqa: ANN401
    """Return a tree with its tensors copied, so that an in-place reference changes no input."""
    return mapped(value, torch.clone)


def mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:  # noqa: ANN401
    """Return a tree with its tensors changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, list | tuple):
        items = [mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, SimpleNamespace):
        return type(value)(**mapped(vars(value), change))
    return value


def changed(args: list[Any], copies: list[Any]) -> set[int]:
    """Return which arguments differ from what they were copied from."""
    return {
        index
        for index, (old, new) in enumerate(zip(args, copies, strict=True))
        if not all(map(_same, tensors(old), tensors(new)))
    }


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape:
        # Resized in place.
        return False
    return same_values(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())
