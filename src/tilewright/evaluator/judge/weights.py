"""Weights: drawn anew after construction, so that what was folded or skipped at init shows."""

from __future__ import annotations

import fnmatch
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from tilewright.evaluator.judge.number_formats import from_parts, is_inexact, parts
from tilewright.wire.tensors import DTYPES

MAX_WEIGHT_NAMES = 8
"""Number of a runner's weights that the judge compares with each of its own weights that has
another name in the runner."""
KNOWN_SHARE = 1 / 8
"""Share of equal elements from which on a weight is no set of random numbers. In float8 e4m3, the
coarsest format, the most frequent of many normal numbers has a share of 1/25."""
FEW_REPEATS = 4
"""Equal elements that a weight needs to be no set of random numbers. In bf16, two of 9 to 16 random
numbers are equal by chance in up to 14 % of modules."""
FEW_REPEATS_OF_BYTES = 8
"""The same for numbers of 8 bits, which are equal more often."""
MANY_ELEMENTS = 1 << 20
"""Elements of a weight from which on only every n-th one is compared."""


def resample(
    model: torch.nn.Module, seed: int, buffers: Sequence[str] = ()
) -> dict[str, torch.Tensor]:
    """Return new values for every inexact parameter and running statistic of `model`.

    Scale and mean stay, so the model stays as well-conditioned as it was. Constants (zero bias,
    unit gain, fresh statistics) become visibly non-constant. The problem declares `buffers` as
    weights. They get their own values in another order, since their values alone are valid.
    """
    found = _resampled(model)
    device = next((value.device for _, value in found), torch.device("cpu"))
    generator = torch.Generator(device).manual_seed(seed)
    state = {name: _fresh(name, value, generator) for name, value in found}
    for name, value in declared_buffers(model, buffers):
        if name in state:
            continue
        order = torch.Generator(value.device).manual_seed(_named_seed(seed, name))
        state[name] = _fresh(name, value, order) if _is_plain(value) else shuffled(value, order)
    return state


def declared_buffers(
    model: torch.nn.Module, names: Sequence[str]
) -> list[tuple[str, torch.Tensor]]:
    """Return the buffers that a problem declares as weights, by name or pattern.

    A buffer that `state_dict` leaves out cannot be loaded: it is never one of them.
    """
    stored = model.state_dict()
    return [
        (name, value)
        for name, value in model.named_buffers()
        if name in stored and any(fnmatch.fnmatchcase(name, pattern) for pattern in names)
    ]


def shuffled(value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return the elements of a tensor in another order."""
    order = torch.randperm(value.numel(), generator=generator, device=generator.device)
    # torch computes no random order of float8 or complex elements, and before 2.10 a CPU does not
    # index float8. Bytes can be indexed everywhere.
    octets = value.reshape(value.numel(), 1).view(torch.uint8)
    return octets[order].view(value.dtype).reshape(value.shape)


def _is_plain(value: torch.Tensor) -> bool:
    """Tell whether a buffer is a constant that noise may replace: another order changes nothing."""
    return is_inexact(value) and is_constant(value)


def _named_seed(seed: int, name: str) -> int:
    """Return a seed of its own for a buffer, so that no two of one size have the same order."""
    return (seed ^ zlib.crc32(name.encode())) & ((1 << 63) - 1)


def _fresh(name: str, value: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    numbers = parts(value).float()
    device = generator.device
    noise = torch.randn(numbers.shape, generator=generator, device=device)
    spread = float(numbers.std()) if numbers.numel() > 1 else 0.0
    mean = float(numbers.mean()) if numbers.numel() else 0.0
    if name.endswith("running_var"):
        fresh = 0.5 + torch.rand(numbers.shape, generator=generator, device=device)
    elif spread < 1e-12:
        fresh = mean + noise * 0.25 * max(abs(mean), 0.4)
    else:
        fresh = mean + noise * spread
    return from_parts(fresh, value).to(value.dtype)


def is_constant(value: torch.Tensor) -> bool:
    """Tell whether all elements are equal: a default that makes its operation a no-op."""
    return value.numel() == 0 or bool((value == value.reshape(-1)[0]).all())


def is_known_before(value: torch.Tensor, other: torch.Tensor | None) -> bool:
    """Tell whether an author knows a weight in part before a module is built.

    Many of its elements then have one value, like zeros of a sparse matrix. Or many are the same
    under another init seed, like those of an identity; `other` is the weight under that seed.
    """
    if not is_inexact(value) or value.numel() < 2:
        return False
    some = parts(value).reshape(-1)[:: -(-value.numel() // MANY_ELEMENTS)]
    numbers = some.float() if some.element_size() < 4 else some
    few = FEW_REPEATS if some.element_size() > 1 else FEW_REPEATS_OF_BYTES
    enough = max(KNOWN_SHARE * numbers.numel(), few)
    _, counts = numbers.unique(return_counts=True)
    if float(counts.max()) >= enough:
        return True
    if other is None or other.shape != value.shape or other.dtype != value.dtype:
        return False
    again = parts(other).reshape(-1)[:: -(-value.numel() // MANY_ELEMENTS)]
    return int((some == again.to(some.device)).sum()) >= enough


def named_alike(fresh: dict[str, torch.Tensor], entries: list[list[Any]]) -> dict[str, str]:
    """Map the runner's names to the judge's where names and shapes agree."""
    shapes = {name: tuple(shape) for name, shape, _ in entries}
    return {name: name for name, value in fresh.items() if shapes.get(name) == tuple(value.shape)}


def valued_alike(value: torch.Tensor, seeded: dict[str, torch.Tensor]) -> str | None:
    """Return the first of our seeded weights that has these values: any of them will do."""
    numbers = parts(value)
    alike = (
        name
        for name, ours in seeded.items()
        if ours.shape == value.shape and torch.equal(numbers, parts(ours))
    )
    return next(alike, None)


def unmatched(fresh: dict[str, torch.Tensor], entries: list[list[Any]]) -> list[str]:
    """Return the runner's names that may hold an unmatched weight, some for each form."""
    shapes = {name: tuple(shape) for name, shape, _ in entries}
    missing = Counter(
        (tuple(value.shape), is_inexact(value))
        for name, value in fresh.items()
        if shapes.get(name) != tuple(value.shape)
    )
    capacity = Counter({form: MAX_WEIGHT_NAMES * count for form, count in missing.items()})
    found = []
    for name, shape, kind in entries:
        form = (tuple(shape), is_inexact(torch.empty(0, dtype=DTYPES[kind])))
        if name not in fresh and capacity[form]:
            capacity[form] -= 1
            found.append(name)
    return found


def _resampled(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    parameters = [(n, p.detach()) for n, p in model.named_parameters() if is_inexact(p)]
    statistics = [
        (name, value)
        for name, value in model.named_buffers()
        if name.split(".")[-1] in ("running_mean", "running_var")
    ]
    return parameters + statistics
