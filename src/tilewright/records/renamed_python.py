"""Old names of modules, classes and attributes that plug-ins use, for the errors about them.

Nothing is importable under an old name: the registry refuses the plug-in and gives the new name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CodeType, FunctionType, ModuleType

__all__ = ["ATTRIBUTES", "METHODS", "MODULES", "NAMES", "new_import", "renamed_uses"]


def _pairs(text: str) -> dict[str, str]:
    old_and_new = text.split()
    return dict(zip(old_and_new[::2], old_and_new[1::2], strict=True))


MODULES: Mapping[str, str] = {
    f"tilewright.{old}": f"tilewright.{new}"
    for old, new in _pairs("""
        languages.kernels languages.triton_kernels  languages.native languages.cpp_lexer
        languages.native_facts languages.cpp_facts  languages.opnames languages.operator_names
        languages.reply languages.reply_parser      languages.source languages.static_features
        languages.streams languages.stream_use      loop.contexts loop.context_windows
        loop.judging loop.answer_evaluator          loop.player loop.rollout
        problems.new problems.template              problems.reader problems.loader
        problems.sets.golden problems.sets.gold_file
        problems.sets.gold_tests problems.sets.gold_file_tests
        problems.store problems.imported_sets       records.health records.problem_lint
        records.log records.event_log               records.rows records.parquet
        records.runs records.run_folder             records.store records.report_cache
    """).items()
}
"""Modules that plug-ins import, and their present names."""
NAMES: Mapping[str, str] = _pairs("""
    Asked RequestsIssued  Asking AnswerJudge  Begun RunStarted  Judgement EvalSummary
    Spent Usage  Told TurnFinished  spent_on usage_of
""")
"""Classes and functions that plug-ins import."""
ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "checks": _pairs("""
        census operator_counts  outside_s untimed_cpu_s  require_own_kernel require_custom_kernel
        right_when_knocked_out right_when_suppressed
        right_when_seeded passes_with_initial_weights
    """),
}
"""For each kind of plug-in: fields that it reads."""
METHODS: Mapping[str, Mapping[str, str]] = {
    "worlds": _pairs("answered evaluate_reply  unanswered record_refusal"),
}
"""For each kind of plug-in: methods that it defines."""


def new_import(error: ImportError) -> str:
    """Return the new name of what could not be imported, in words; empty if it has none."""
    names = {**MODULES, **{old: new for old, new in NAMES.items() if f"'{old}'" in error.msg}}
    for old, new in names.items():
        if old == error.name or f"'{old}'" in error.msg:
            return f"{old} is now {new}"
    return ""


def renamed_uses(kind: str, module: ModuleType) -> list[str]:
    """Return what a plug-in of `kind` uses by an old name, each in words."""
    functions = list(_functions(module))
    read = {name for function in functions for name in _attributes(function.__code__)}
    defined = {function.__name__ for function in functions} | set(vars(module))
    old = {name: new for name, new in ATTRIBUTES.get(kind, {}).items() if name in read - defined}
    for name, new in METHODS.get(kind, {}).items():
        if name in defined and new not in defined:
            old[name] = new
    return [f"{name} is now {new}" for name, new in old.items()]


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    for thing in vars(module).values():
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        members = vars(thing).values() if isinstance(thing, type) else (thing,)
        yield from (item for item in members if isinstance(item, FunctionType))


def _attributes(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _attributes(constant)
