"""The pytest plug-in: the mark and the fixture `kernel`.

pytest imports this file in every project that has tilewright installed. So it imports pytest alone
until a test with the mark is set up.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from tilewright.integrations.requirement import Condition
    from tilewright.records import EvalReport

MARK = "kernel"
MUST_JUDGE = "--kernels-must-judge"
CANDIDATE = "candidate.py"
"""The candidate of a mark that names none."""
DEFAULT_REQUIREMENT = "correct"
ARGUMENTS: dict[str, str] = {
    "problem": "an address such as `softmax`, or a path",
    "candidate": f"a path, source text or a function; default: `{CANDIDATE}`",
    "require": f"conditions on the kernel; default: `{DEFAULT_REQUIREMENT}`; `None`: no condition",
    "baseline": "`eager`, `compile`, `max-autotune`, the path of a candidate, or a list of them",
    "protocol": "`strict` or `official`",
    "device": "`cpu`, `cuda` or `cuda:N`",
    "language": "the language; default: detected",
    "entry": "the exported name; default: the problem's",
    "config": "settings, as for `tilewright.evaluate`",
}
"""The arguments of the mark. Paths are relative to the folder of the test's file."""


@dataclass(frozen=True)
class JudgedKernel:
    """The value of the fixture `kernel`: a report, and the run folder that holds it."""

    report: EvalReport
    folder: Path

    @property
    def verdict(self) -> str:
        """The verdict."""
        return self.report.verdict

    @property
    def speedup(self) -> float | None:
        """The estimate of the speed-up over the first baseline; `None`: not measured."""
        return self.report.speedup

    @property
    def low(self) -> float | None:
        """The lower end of its 95 % interval; `None`: there is no interval."""
        return self.report.speedup_low

    @property
    def high(self) -> float | None:
        """The upper end of its 95 % interval; `None`: there is no interval."""
        return self.report.speedup_high

    @property
    def case_high(self) -> float | None:
        """The lowest upper end over the cases, against the first baseline; `None`: not measured.

        A kernel that is slower in one case may have an interval over all cases that contains 1.
        """
        found = self.report.comparisons
        ends = [item.speedup_high for item in found if item.baseline == found[0].baseline]
        return min((end for end in ends if end is not None), default=None)

    @property
    def coverage(self) -> float | None:
        """The share of its own kernels in its time on a GPU; `None`: not measured."""
        return None if self.report.profile is None else self.report.profile.coverage


JUDGED = pytest.StashKey[tuple[JudgedKernel, tuple["Condition", ...]]]()
"""The kernel of a test and its conditions, which the call of the test reads."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that turns skips into failures."""
    parser.getgroup("tilewright").addoption(
        MUST_JUDGE,
        action="store_true",
        help="fail a test whose kernel is unjudged; by default it is skipped with the reason",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    text = "judge a kernel with tilewright before the test, and require figures of it"
    config.addinivalue_line("markers", f"{MARK}(problem, require='{DEFAULT_REQUIREMENT}'): {text}")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a marked test use the fixture although its function does not name it."""
    names = getattr(item, "fixturenames", None)
    mark = item.get_closest_marker(MARK)
    # A mark of the same name without a problem belongs to somebody else.
    if names is not None and mark is not None and "problem" in mark.kwargs and MARK not in names:
        names.append(MARK)


@pytest.fixture
def kernel(request: pytest.FixtureRequest) -> JudgedKernel:
    """The kernel of the test's mark, judged by tilewright."""
    mark = request.node.get_closest_marker(MARK)
    if mark is None or "problem" not in mark.kwargs:
        _fail(f"the fixture needs @pytest.mark.{MARK}(problem=...) on {request.node.name}")
    from tilewright.errors import InfrastructureError, TilewrightError

    try:
        judged = _judged(mark.args, mark.kwargs, request.path.parent)
    except TilewrightError as error:
        # Outside of this block pytest shows one line, and not both exceptions.
        failure = error
    else:
        request.node.stash[JUDGED] = judged
        return judged[0]
    if isinstance(failure, InfrastructureError):
        _without_verdict(request.config, str(failure))
    _fail(str(failure))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Skip or fail a test whose kernel is unjudged or misses the requirement."""
    judged = pyfuncitem.stash.get(JUDGED, None)
    if judged is None:
        return
    from tilewright.integrations.requirement import Figures
    from tilewright.integrations.verdict_table import TABLE, row_of
    from tilewright.scoring.report_text import reason_of

    made, conditions = judged
    cell = TABLE[row_of(made.report)].pytest
    where = f"report {made.folder}"
    why = f"{made.verdict}: {reason_of(made.report)}; {where}"
    if cell.ends == "skipped":
        _without_verdict(pyfuncitem.config, why)
    if cell.ends == "fails" and conditions:
        _fail(why)
    figures = Figures(
        correct=made.verdict == "correct",
        speedup=made.speedup,
        low=made.low,
        high=made.high,
        case_high=made.case_high,
        coverage=made.coverage,
    )
    missed = [text for text in (item.miss(figures) for item in conditions) if text]
    if missed:
        _fail(f"{'; '.join(missed)}; {where}")


def _judged(
    positional: tuple[object, ...], given: Mapping[str, Any], folder: Path
) -> tuple[JudgedKernel, tuple[Condition, ...]]:
    from tilewright.api import build_request, with_arguments
    from tilewright.config import settings_of
    from tilewright.errors import ConfigError, suggestion
    from tilewright.integrations.kept_report import judge_and_keep
    from tilewright.integrations.requirement import parse_requirement

    if positional:
        form = f"@pytest.mark.{MARK}(problem='softmax', candidate='kernel.py')"
        raise ConfigError(f"write all arguments of the mark with their names: {form}")
    for name in given:
        if name not in ARGUMENTS:
            hint = suggestion(name, ARGUMENTS) or f"known: {', '.join(ARGUMENTS)}"
            raise ConfigError(f"@pytest.mark.{MARK}: no argument {name!r}; {hint}")
    required = given.get("require", DEFAULT_REQUIREMENT)
    conditions = () if required is None else parse_requirement(required)
    baselines = given.get("baseline")
    if baselines is not None:
        listed = [baselines] if isinstance(baselines, str | Path) else baselines
        baselines = tuple(str(_near(item, folder)) for item in listed)
    settings = with_arguments(
        settings_of(given.get("config")),
        baselines=baselines,
        protocol=given.get("protocol"),
        device=given.get("device"),
    )
    request = build_request(
        _near(given.get("candidate", str(folder / CANDIDATE)), folder),
        _near(given["problem"], folder),
        settings,
        language=given.get("language"),
        entry=given.get("entry"),
    )
    kept = judge_and_keep(request, settings)
    return JudgedKernel(kept.report, kept.folder), conditions


def _near(value: Any, folder: Path) -> Any:  # noqa: ANN401 - any form of a candidate or problem
    """Return the path of a file in the folder of the test, or the value itself."""
    # Source text may be longer than a path can be, for which `Path.exists` raises.
    if isinstance(value, str | Path) and value and os.path.exists(folder / value):
        return folder / value
    return value


def _without_verdict(config: pytest.Config, why: str) -> NoReturn:
    if config.getoption(MUST_JUDGE):
        _fail(f"{why} ({MUST_JUDGE})")
    pytest.skip(f"tilewright: {why}")


def _fail(why: str) -> NoReturn:
    pytest.fail(f"tilewright: {why}", pytrace=False)
