"""The oracle of a reference: its outputs in float64."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from tilewright.evaluator.judge.argument_trees import mapped, tensors
from tilewright.evaluator.judge.float64_casts import SINGLE, Float64Casts
from tilewright.evaluator.judge.number_formats import FLOAT8, widened
from tilewright.evaluator.judge.random_seeds import seed_generators
from tilewright.evaluator.judge.reference import (
    Reference,
    evaluate,
    finish,
    is_out_of_memory,
    tensors_at,
)

ORACLE_BUDGET_S = 2.0
"""Seconds that one float64 evaluation may take; slower references are compared in float32. Time in
which other processes kept the cores does not count."""


def run_double(
    reference: Reference,
    args: list[Any],
    grad_outputs: list[torch.Tensor],
    seed: int,
    written: Sequence[int] | None = None,
) -> list[torch.Tensor] | None:
    """Evaluate in float64; `None` where the reference cannot, or would be too slow."""
    outputs_of = sorted(reference.written.known) if written is None else written
    if reference.precision.is_slow or reference.call_s * 3 > ORACLE_BUDGET_S:
        return None
    start, start_cpu = time.perf_counter(), time.process_time()
    previous = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        function = reference.function
        if reference.model is not None:
            if reference.precision.double is None:
                reference.precision.double = in_double(reference.model)
            function = reference.precision.double
        grads = [widened(value) for value in grad_outputs]
        for mode in modes(args, reference.model):
            seed_generators(reference.device, seed)
            # A reference need not run in float64; the report says so.
            with _suppressed_errors(reference), mode:
                given = mapped(args, in_double)
                outputs, _ = evaluate(function, reference, list(given), grads)
                finish(reference.device)
                return [widened(value) for value in (*outputs, *tensors_at(given, outputs_of))]
    except Exception as error:  # noqa: BLE001 - nor need its weights be copied
        reference.precision.ran_out_of_memory |= is_out_of_memory(error)
        return None
    finally:
        torch.set_default_dtype(previous)
        took_s = min(time.perf_counter() - start, time.process_time() - start_cpu)
        reference.precision.is_slow = took_s > ORACLE_BUDGET_S
    return None


@contextmanager
def _suppressed_errors(reference: Reference) -> Iterator[None]:
    """Suppress every error, and record whether device memory ran out."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - a reference need not run in float64
        reference.precision.ran_out_of_memory |= is_out_of_memory(error)


def modes(args: list[Any], model: torch.nn.Module | None) -> list[AbstractContextManager[Any]]:
    """Return the modes in which a reference is tried in float64.

    One that names float32 computes a step in it, and would have no error of its own there. One that
    names types of 16 bits rounds on purpose, or mixes them with float64 and fails. One that reads
    float8 must name them, and would round where it need not.
    """
    state = [] if model is None else [*model.parameters(), *model.buffers()]
    if any(value.dtype in FLOAT8 for value in (*tensors(args), *state)):
        return [Float64Casts()]
    return [Float64Casts(SINGLE), nullcontext(), Float64Casts()]


def in_double(value: Any) -> Any:  # noqa: ANN401 - a tensor or a module
    """Return a copy of a tensor or a module, in float64 and complex128 where it is inexact."""
    if isinstance(value, torch.Tensor):
        return widened(value).clone()
    return copy.deepcopy(value)._apply(widened)
