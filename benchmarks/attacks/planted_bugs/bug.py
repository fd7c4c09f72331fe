"""The format of a planted bug; the other modules of this folder list the bugs.

Each bug is one replacement in one file. An old text is short, so that it survives reformatting. It
must occur exactly once in its file; otherwise the bar names the bug.
"""

from __future__ import annotations

from dataclasses import dataclass

UNIT = "tests/unit/"
PIPELINE = UNIT + "evaluator/pipeline/test_verdicts.py"
SUPPRESSION = UNIT + "evaluator/pipeline/test_launch_suppression.py"
RULES = UNIT + "evaluator/test_supervisor_rules.py"
REQUESTS = UNIT + "evaluator/runners/test_build_requests.py"
RUNNER = UNIT + "evaluator/runners/test_cpu_runner.py"


@dataclass(frozen=True)
class Bug:
    """One planted bug: the old text, the new text, and the tests that must then fail."""

    name: str
    file: str
    """Under src/tilewright."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Files or node ids, from the root of the repository."""


def planted(
    file: str, tests: str, *bugs: tuple[str, str, str] | tuple[str, str, str, str]
) -> tuple[Bug, ...]:
    """Return bugs of one file that `tests` find: (name, old, new) or (name, old, new, test).

    A bug names its test if the file also has slow tests with whole evaluations.
    """
    return tuple(Bug(bug[0], file, bug[1], bug[2], ("::".join([tests, *bug[3:]]),)) for bug in bugs)
