"""The Python door: judge a candidate in a few lines, from any process.

The process that calls needs no torch and may hold CUDA, threads or an event loop: all work is
done below a supervisor process, started on first use and ended with this one.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright import __version__
from tilewright.config import Config
from tilewright.config import load as load_config
from tilewright.errors import ConfigError
from tilewright.evaluator.confinement import LAYERS
from tilewright.evaluator.devices import find_device
from tilewright.evaluator.environment import environment
from tilewright.evaluator.evaluation import COMPILE_MODES
from tilewright.evaluator.host import plan_cores
from tilewright.executors.local import LocalExecutor
from tilewright.problems.candidates import make_candidate, read_files
from tilewright.problems.store import find_one
from tilewright.records import (
    Baseline,
    Candidate,
    EvalReport,
    EvalRequest,
    Failed,
    Problem,
    SourceFile,
)
from tilewright.records.store import lookup, remember, work_key
from tilewright.registry import catalogue

__all__ = ["build_request", "evaluate", "evaluate_async", "judge"]

RESERVED = {"candidate", "eager", *COMPILE_MODES}
"""What no file that is a baseline may be called."""
Progress = Callable[[str, dict[str, Any]], None]
_executors: dict[Path, LocalExecutor] = {}


def evaluate(
    candidate: str | Path | Candidate,
    problem: str | Path | Problem,
    *,
    baselines: Sequence[str] | None = None,
    protocol: str | None = None,
    language: str | None = None,
    entry: str | None = None,
    config: Config | None = None,
    progress: Progress | None = None,
) -> EvalReport:
    """Judge a candidate against a problem and return the report.

    Args:
        candidate: a path to a file or folder, source text with a line break, or a record.
        problem: a path, the name of a bundled problem, or a record.
        baselines: `eager`, `compile`, `max-autotune`, or paths of other candidates; default:
            the config's.
        protocol: `strict` or `official`; default: the config's.
        language: forces the language instead of reading it from the source.
        entry: the exported name, where it is neither `ModelNew` nor the problem's.
        config: settings; default: those of `tilewright.config.load()`.
        progress: called with an event's name and its fields, from this thread.

    Raises:
        ConfigError: the candidate cannot be read or has no entry point.
        ProblemError: the problem cannot be used.
        InfrastructureError: our side failed, twice.
    """
    settings = config or load_config()
    if protocol is not None or baselines is not None:
        changes: dict[str, Any] = {}
        if protocol is not None:
            changes["protocol"] = protocol
        if baselines is not None:
            changes["baselines"] = tuple(baselines)
        section = settings.eval.model_validate({**settings.eval.model_dump(), **changes})
        settings = settings.model_copy(update={"eval": section})
    request = build_request(candidate, problem, settings, language=language, entry=entry)
    return judge(request, settings, progress)


async def evaluate_async(
    candidate: str | Path | Candidate,
    problem: str | Path | Problem,
    **options: Any,  # noqa: ANN401 - those of `evaluate`
) -> EvalReport:
    """Judge a candidate without blocking the event loop; takes the arguments of `evaluate`."""
    return await asyncio.to_thread(evaluate, candidate, problem, **options)


def build_request(
    candidate: str | Path | Candidate,
    problem: str | Path | Problem,
    settings: Config,
    *,
    language: str | None = None,
    entry: str | None = None,
    allow_imports: Sequence[str] = (),
    seed: str | None = None,
) -> EvalRequest:
    """Return the request for these arguments; a broken candidate still gives one.

    Raises:
        ConfigError: a path, a language, an entry point or the name of a baseline is wrong.
        ProblemError: the problem cannot be read.
    """
    target = find_one(str(problem), settings.home) if isinstance(problem, str | Path) else problem
    imports = tuple(str(Path(path).resolve()) for path in allow_imports)
    for path in imports:
        if not Path(path).is_dir():
            raise ConfigError(f"--allow-import {path}: no such folder")
    made = _candidate(candidate, target, language, entry, imports)
    section = settings.eval
    baselines = tuple(_baseline(name, target) for name in section.baselines)
    names = [item.name for item in baselines]
    taken = {item.name for item in baselines if item.kind == "candidate"} & RESERVED
    for name in names:
        if name in taken or names.count(name) > 1:
            raise ConfigError(
                f"--baseline: two sides would be called {name!r}; rename the file of one"
            )
    for name in section.require_layers:
        if name not in LAYERS:
            raise ConfigError(f"no layer {name!r}; known: {', '.join(LAYERS)}")
    return EvalRequest(
        problem=target,
        candidate=made,
        baselines=baselines,
        protocol=section.protocol,
        rules=section.rules,
        timing=section.timing,
        limits=section.limits,
        device=section.device,
        require_layers=section.require_layers,
        seed=seed,
    )


def _candidate(
    source: str | Path | Candidate,
    problem: Problem,
    language: str | None,
    entry: str | None,
    imports: tuple[str, ...],
) -> Candidate:
    if isinstance(source, Candidate):
        return source
    if isinstance(source, str) and "\n" in source:
        # Half a surrogate pair, as models write them, is no text and cannot be sent on.
        text = source.encode(errors="replace").decode()
        files: tuple[SourceFile, ...] = (SourceFile(path="candidate.py", text=text),)
    else:
        files = read_files(str(source))
    made = make_candidate(files, problem, language=language, entry=entry, allow_imports=imports)
    return made[0] if isinstance(made, tuple) else made


def _baseline(name: str, problem: Problem) -> Baseline:
    if name == "eager":
        return Baseline(name=name, kind="eager")
    if name in ("compile", "max-autotune"):
        return Baseline(name=name, kind="compile")
    made = make_candidate(read_files(name), problem)
    if isinstance(made, tuple):
        failed: Failed = made[1]
        raise ConfigError(f"baseline {name}: {failed.message}")
    return Baseline(name=Path(name).stem, kind="candidate", candidate=made)


def judge(request: EvalRequest, settings: Config, progress: Progress | None = None) -> EvalReport:
    """Judge a request, or answer it from the store where `eval.reuse` is set.

    Raises:
        ProblemError: the problem cannot be used.
        InfrastructureError: our side failed, twice.
    """
    key = None
    if settings.eval.reuse:
        key = work_key(
            request, environment(plan_cores_here(), find_device(request.device)), __version__
        )
        found = lookup(settings.home, key)
        if found is not None:
            return found
    checks = None
    if settings.plugins is not None:
        checks = tuple(catalogue("checks", packages=settings.plugins))
    report = _executor(settings.home).evaluate(request, progress or _silent, checks=checks)
    if key is not None:
        with contextlib.suppress(OSError):
            # A full disk loses the short cut, not the verdict.
            remember(settings.home, key, report)
    return report


def plan_cores_here() -> Any:  # noqa: ANN401 - Cores
    """Return how the cores of this machine would be used."""
    import os

    return plan_cores(list(os.sched_getaffinity(0)))


def device_here(settings: Config) -> Any:  # noqa: ANN401 - Device
    """Return the device that these settings judge on.

    Raises:
        InfrastructureError: this machine has none of its name.
    """
    return find_device(settings.eval.device)


def _silent(event: str, fields: dict[str, Any]) -> None:
    """Ignore progress."""


def _executor(home: Path) -> LocalExecutor:
    if home not in _executors:
        executor = LocalExecutor(home)
        atexit.register(executor.close)
        _executors[home] = executor
    return _executors[home]
