"""The Python API: evaluate a candidate in a few lines, from any process.

The calling process needs no torch, and may use CUDA, threads or an event loop. A supervisor process
does all the work. It starts with the first evaluation and ends with the calling process.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tilewright._version import __version__
from tilewright.config import LOCAL, Config, Given, settings_of
from tilewright.errors import ConfigError
from tilewright.evaluator.devices.devices import find_device, plan_cores
from tilewright.evaluator.devices.recorded_environment import environment
from tilewright.executors.base import Executor, Progress, ignore_progress
from tilewright.executors.factory import open_executor
from tilewright.problems.requests import build_request
from tilewright.records import Candidate, EvalReport, EvalRequest, Problem
from tilewright.records.field_faults import first_fault
from tilewright.records.run_folder import lookup, remember, work_key
from tilewright.registry import selected_checks

__all__ = ["build_request", "evaluate", "evaluate_async", "evaluate_request", "with_arguments"]

_executors: dict[tuple[str, Path, str], Executor] = {}


def evaluate(  # noqa: PLR0913 - one argument for each thing that callers vary
    candidate: str | Path | Candidate | Callable[..., Any],
    problem: str | Path | Problem | tuple[Callable[..., Any], Callable[..., Any]],
    *,
    baselines: str | Sequence[str] | None = None,
    protocol: str | None = None,
    device: str | None = None,
    language: str | None = None,
    entry: str | None = None,
    config: Given = None,
    progress: Progress | None = None,
) -> EvalReport:
    """Judge a candidate against a problem and return the report.

    Args:
        candidate: source text, a path to a file or folder, a function, or a record.
        problem: an address such as `softmax` or `kernelbench/level1-19`, a path, source text, a
            record, or two functions: the reference, and one that returns its inputs. The latter
            takes nothing, a `torch.Generator`, or a case and a generator.
        baselines: `eager`, `compile`, `max-autotune`, or paths of other candidates; default:
            the config's.
        protocol: `strict` or `official`; default: the config's.
        device: `cpu`, `cuda` or `cuda:N`; default: the config's.
        language: the language; default: detected from the source.
        entry: the exported name; default: `ModelNew` or the problem's.
        config: settings: a mapping such as `{"eval": {"device": "cpu"}}`, a list such as
            `["eval.device=cpu"]`, or a tree; default: those of `tilewright.config.load()`.
        progress: called with an event's name and its fields, from this thread.

    Raises:
        ConfigError: an argument has a wrong type or value, or a file cannot be read.
        ProblemError: the problem cannot be used.
        InfrastructureError: an internal error occurred twice.
    """
    settings = with_arguments(
        settings_of(config), protocol=protocol, baselines=baselines, device=device
    )
    request = build_request(candidate, problem, settings, language=language, entry=entry)
    return evaluate_request(request, settings, progress)


def with_arguments(settings: Config, **given: object) -> Config:
    """Return the settings with those of `eval` that arguments give; `None` gives none.

    Raises:
        ConfigError: a value has a wrong type, or is not among those allowed.
    """
    section = settings.eval.model_dump()
    for name, value in given.items():
        if value is not None:
            section[name] = (value,) if name == "baselines" and isinstance(value, str) else value
    try:
        return settings.model_copy(update={"eval": settings.eval.model_validate(section)})
    except ValidationError as error:
        raise ConfigError(first_fault(error)) from error


async def evaluate_async(
    candidate: str | Path | Candidate | Callable[..., Any],
    problem: str | Path | Problem | tuple[Callable[..., Any], Callable[..., Any]],
    **options: Any,  # noqa: ANN401 - those of `evaluate`
) -> EvalReport:
    """Judge a candidate without blocking the event loop. The arguments are those of `evaluate`."""
    # `asyncio.to_thread` shares a pool of cpu_count + 4 threads: with 2 cores it would run 30
    # waiting calls 6 at a time. A cancelled await does not end the call.
    report: Future[EvalReport] = Future()
    report.set_running_or_notify_cancel()

    def work() -> None:
        try:
            report.set_result(evaluate(candidate, problem, **options))
        except BaseException as error:  # noqa: BLE001 - raised again in the event loop
            report.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(report)


def evaluate_request(
    request: EvalRequest, settings: Config, progress: Progress | None = None
) -> EvalReport:
    """Judge a request, or return its stored report if `eval.reuse` is set."""
    key = None
    # A server has a store of its own.
    if settings.eval.reuse and settings.executor == LOCAL:
        cores = plan_cores(list(os.sched_getaffinity(0)))
        key = work_key(request, environment(cores, find_device(request.device)), __version__)
        found = lookup(settings.home, key)
        if found is not None:
            return found
    checks = selected_checks(settings.plugins)
    report = _executor(settings).evaluate(request, progress or ignore_progress, checks=checks)
    if key is not None:
        with contextlib.suppress(OSError):
            # The verdict is valid although the disk is full.
            remember(settings.home, key, report)
    return report


def _executor(settings: Config) -> Executor:
    place = (settings.executor, settings.home, settings.host)
    if place not in _executors:
        executor = open_executor(settings)
        atexit.register(executor.close)
        _executors[place] = executor
    return _executors[place]
