"""From a candidate and a problem to a request that an executor can take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilewright.config import Config
from tilewright.errors import ConfigError, suggestion
from tilewright.problems.candidates import make_candidate, read_candidate
from tilewright.problems.function_source import entry_of
from tilewright.problems.given_sources import candidate_files, problem_of
from tilewright.records import Baseline, Candidate, EvalRequest, Problem
from tilewright.records.request import COMPILE_MODES, RESERVED
from tilewright.wire.names import ISOLATION_LAYERS

BASELINES = ("eager", *COMPILE_MODES)
"""Baselines that need no file."""


def build_request(
    candidate: str | Path | Candidate | Callable[..., Any],
    problem: str | Path | Problem | tuple[Callable[..., Any], Callable[..., Any]],
    settings: Config,
    *,
    language: str | None = None,
    entry: str | None = None,
    allow_imports: Sequence[str] = (),
    seed: str | None = None,
) -> EvalRequest:
    """Return the request for these arguments; a broken candidate still gives one."""
    for name, value in (("language", language), ("entry", entry)):
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{name}: expected text, got {type(value).__name__}")
    target = problem_of(problem, settings.home)
    for path in allow_imports:
        if not Path(path).is_dir():
            raise ConfigError(f"--python-path {path}: no such folder")
    imports = tuple(str(Path(path).resolve()) for path in allow_imports)
    made = _candidate(candidate, target, language, entry, imports)
    section = settings.eval
    baselines = tuple(_baseline(name, target) for name in section.baselines)
    count = Counter(item.name for item in baselines)
    for item in baselines:
        if count[item.name] > 1:
            raise ConfigError(f"baselines: two of them are named {item.name!r}; rename one file")
    for name in section.require_isolation:
        if name not in ISOLATION_LAYERS:
            raise ConfigError(f"no layer {name!r}; known: {', '.join(ISOLATION_LAYERS)}")
    return EvalRequest(
        problem=target,
        candidate=made,
        baselines=baselines,
        protocol=section.protocol,
        rules=section.rules,
        timing=section.timing,
        limits=section.limits,
        device=section.device,
        require_isolation=section.require_isolation,
        seed=seed,
    )


def _candidate(
    source: object,
    problem: Problem,
    language: str | None,
    entry: str | None,
    imports: tuple[str, ...],
) -> Candidate:
    if isinstance(source, Candidate):
        return source
    entry = entry or entry_of(source)
    made = make_candidate(
        candidate_files(source, entry or problem.entry),
        problem,
        language=language,
        entry=entry,
        allow_imports=imports,
    )
    return made[0] if isinstance(made, tuple) else made


def _baseline(name: str, problem: Problem) -> Baseline:
    if name == BASELINES[0]:
        return Baseline(name=name, kind="eager")
    if name in BASELINES:
        return Baseline(name=name, kind="compile")
    if not Path(name).exists():
        advice = (
            suggestion(name, BASELINES) or f"write {', '.join(BASELINES)} or a candidate's path"
        )
        raise ConfigError(f"baseline {name}: no such file; {advice}")
    if (own := Path(name).stem) in RESERVED:
        raise ConfigError(f"baseline {name}: {own!r} belongs to another one; rename the file")
    made = make_candidate(read_candidate(name, problem.entry), problem)
    if isinstance(made, tuple):
        raise ConfigError(f"baseline {name}: {made[1].message}")
    return Baseline(name=own, kind="candidate", candidate=made)
