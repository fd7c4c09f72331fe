"""The rule that explains why TritonBench's scripts and `official` disagree on a prediction. Pure.

Each rule reads evidence: an error, an exit, the tests, the imported problem. A disagreement that no
rule fits has no name, and the comparison lists it so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.accuracy.published_predictions.scripts import STOPPED, Outcome
from tilewright.languages.syntax import names_stored
from tilewright.problems.sets.gold_file import MAX_CALLS
from tilewright.records import Problem
from tilewright.records.codes import FailureReason
from tilewright.records.events import EvalSummary

NO_CUDA = "not compiled with CUDA"
MODULE_LINE = re.compile(r"line (\d+), in <module>")
UNKNOWN_NAME = re.compile(r"NameError: name '(\w+)' is not defined")
ISOLATION = (FailureReason.PROTOCOL_VIOLATION, FailureReason.MEMORY_CORRUPTION)


@dataclass(frozen=True)
class Evidence:
    """One prediction as TritonBench's scripts and as the protocol `official` judge it."""

    script: Outcome
    official: EvalSummary | None
    """`None`: the problem is not imported."""
    problem: Problem | None
    code: str
    """The text of the prediction."""
    tests: ast.Module
    """The test part of the gold file."""
    gold: Outcome | None
    """The scripts' answers about the gold file itself, if it was run."""

    @property
    def accuracies(self) -> tuple[bool, bool]:
        """Whether `official` counts it as called, and as executed."""
        verdict = self.official.verdict if self.official else ""
        return verdict in ("correct", "incorrect"), verdict == "correct"

    @property
    def agrees(self) -> bool:
        return self.accuracies == (self.script.called, self.script.executed)

    @property
    def reason(self) -> str:
        return self.official.reason if self.official else ""

    @property
    def last_error(self) -> str:
        """The last line of an error in the benchmark's script."""
        return self.script.error.rpartition("\n")[2]


@dataclass(frozen=True)
class Rule:
    """A named reason for a disagreement, and whether it fits the evidence."""

    name: str
    meaning: str
    fits: Callable[[Evidence], bool]


Condition = Callable[[Evidence], bool]


def _calls(script: bool, official: bool) -> Condition:
    return lambda e: (e.script.called, e.accuracies[0]) == (script, official)


def _with(first: Condition, then: Condition) -> Condition:
    return lambda e: first(e) and then(e)


ONLY_SCRIPT, ONLY_OFFICIAL, BOTH = _calls(True, False), _calls(False, True), _calls(True, True)


def _verdict_is(verdict: str) -> Condition:
    return lambda e: e.official is not None and e.official.verdict == verdict


def _failed_with(*codes: FailureReason) -> Condition:
    return lambda e: e.official is not None and e.official.code in codes


def _lacks_name_of_tests(e: Evidence) -> bool:
    found = UNKNOWN_NAME.search(e.reason)
    return found is not None and found[1] in _names_bound(e.tests)


def _names_bound(tests: ast.Module) -> set[str]:
    """Return the names that statements of the tests bind in their module."""
    found = set(names_stored(tests))
    for node in ast.walk(tests):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found


def _lacks_name(e: Evidence) -> bool:
    return bool(UNKNOWN_NAME.search(e.last_error))


def _fails_in_own_lines(e: Evidence) -> bool:
    """Tell whether a statement of the prediction raised, not one of the tests below it."""
    lines = [int(number) for number in MODULE_LINE.findall(e.script.error)]
    return bool(lines) and lines[-1] <= e.code.count("\n") + 1


def _has(kind: type[ast.AST]) -> Condition:
    return lambda e: any(isinstance(node, kind) for node in ast.walk(e.tests))


def _tests_print(e: Evidence) -> bool:
    calls = (node.func for node in ast.walk(e.tests) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id == "print" for name in calls)


RULES = (
    Rule("not_imported", "the importer leaves this gold file out", lambda e: e.problem is None),
    Rule("no_verdict", "tilewright judges no candidate of this problem", _verdict_is("unjudged")),
    Rule(
        "check", "a check of tilewright rejects it; the benchmark has none", _verdict_is("rejected")
    ),
    Rule(
        "cuda_in_candidate",
        "without a GPU the scripts ran with the CPU for CUDA; no candidate of tilewright gets that",
        _with(ONLY_SCRIPT, lambda e: NO_CUDA in e.reason),
    ),
    Rule(
        "crash",
        "a signal ended its process in tilewright: what invalid accesses do differs by process",
        _with(ONLY_SCRIPT, _failed_with(FailureReason.CRASH)),
    ),
    Rule(
        "own_limit",
        "tilewright ends a call at a limit; the benchmark has none",
        _with(ONLY_SCRIPT, _failed_with(FailureReason.TIMEOUT, FailureReason.OUT_OF_MEMORY)),
    ),
    Rule(
        "names_of_tests",
        "it lacks a name that the benchmark's file gets from the tests below it",
        _with(ONLY_SCRIPT, _lacks_name_of_tests),
    ),
    Rule(
        "caught_by_tests",
        "the tests catch the error, so that the benchmark's file ends well",
        _with(ONLY_SCRIPT, _has(ast.Try)),
    ),
    Rule(
        "isolation",
        "the sandbox or the message protocol ended it",
        _with(ONLY_SCRIPT, _failed_with(*ISOLATION)),
    ),
    Rule(
        "argument_form",
        "tilewright passes all arguments in one form, which its signature refuses",
        _with(ONLY_SCRIPT, lambda e: "TypeError" in e.reason and "argument" in e.reason),
    ),
    Rule(
        "script_limit",
        "the benchmark's file was stopped at the time limit of this run",
        _with(ONLY_OFFICIAL, lambda e: STOPPED in e.script.error),
    ),
    Rule(
        "own_example",
        "a statement of the prediction fails that runs in a main program alone",
        _with(ONLY_OFFICIAL, _fails_in_own_lines),
    ),
    Rule(
        "gold_fails",
        "the gold file fails in the benchmark's own script on this machine",
        _with(ONLY_OFFICIAL, lambda e: e.gold is not None and not e.gold.called),
    ),
    Rule(
        "other_names",
        "the tests use a name that the prediction lacks and the operator's calls do not need",
        _with(ONLY_OFFICIAL, _lacks_name),
    ),
    Rule(
        "assertion_in_tests",
        "an assertion of the tests fails; `official` compares outputs alone",
        _with(ONLY_OFFICIAL, _with(_has(ast.Assert), lambda e: "AssertionError" in e.last_error)),
    ),
    Rule(
        "further_calls",
        f"the tests make more than {MAX_CALLS} calls; the first {MAX_CALLS} are judged",
        _with(ONLY_OFFICIAL, lambda e: bool(e.problem and len(e.problem.cases) >= MAX_CALLS)),
    ),
    Rule(
        "printed_text",
        "the tests print: the benchmark compares the text, `official` the values",
        _with(BOTH, _tests_print),
    ),
    Rule(
        "prints_itself",
        "the prediction prints text that the gold file does not print",
        _with(BOTH, lambda e: bool(e.script.output.strip())),
    ),
)


def find_rule(evidence: Evidence) -> Rule | None:
    """Return the first rule that fits a disagreement; `None`: it is not explained."""
    return next((rule for rule in RULES if rule.fits(evidence)), None)
