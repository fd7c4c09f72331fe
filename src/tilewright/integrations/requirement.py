"""Requirements on a kernel: `correct and speedup >= 0.98`, read by a small grammar.

A requirement is a list of conditions, with `and` or commas between them. A condition is `correct`,
or a figure, `>=` or `>`, and a number. Nothing of it is run as code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.errors import ConfigError, suggestion

FIGURES: dict[str, str] = {
    "correct": "the verdict is `correct`",
    "speedup": "the estimate of the speed-up over the first baseline",
    "low": "the lower end of its 95 % interval",
    "high": "the upper end of that interval",
    "case_high": "the lowest upper end among the intervals of single cases",
    "coverage": "the share of the candidate's own kernels in its time on a GPU",
}
"""The figures that a requirement may name, with their meanings."""
FORM = "write conditions such as 'correct', 'speedup>=0.98' or 'low>1', with `and` between them"
_CONDITION = re.compile(r"\s*([A-Za-z_]+)\s*(?:(>=|>)\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*)?")
_BETWEEN = re.compile(r"\s*,\s*|\s+and\s+")


@dataclass(frozen=True)
class Figures:
    """The figures of one report; `None`: not measured."""

    correct: bool
    speedup: float | None
    low: float | None
    high: float | None
    case_high: float | None
    coverage: float | None


@dataclass(frozen=True)
class Condition:
    """One condition: `correct`, or the bound of a figure."""

    figure: str
    operator: str = ""
    bound: float = 0.0

    def __str__(self) -> str:
        """Return the condition as it may be written."""
        return f"{self.figure}{self.operator}{self.bound:g}" if self.operator else self.figure

    def miss(self, figures: Figures) -> str:
        """Return why the condition is not met; empty: it is met."""
        value = getattr(figures, self.figure)
        if not self.operator:
            return "" if figures.correct else "the candidate is not correct"
        if value is None:
            return f"{self} is required, and {self.figure} was not measured"
        met = value >= self.bound if self.operator == ">=" else value > self.bound
        return "" if met else f"{self} is required, and {self.figure} is {value:.4g}"


def parse_requirement(text: str) -> tuple[Condition, ...]:
    """Read a requirement.

    Raises:
        ConfigError: it has another form, or names an unknown figure.
    """
    parts = _BETWEEN.split(text.strip())
    return tuple(_condition(part, text) for part in parts)


def _condition(part: str, text: str) -> Condition:
    match = _CONDITION.fullmatch(part)
    if match is None:
        raise ConfigError(f"require={text!r}: {part!r} is no condition; {FORM}")
    figure, operator, bound = match[1], match[2] or "", float(match[3] or 0)
    if figure not in FIGURES:
        hint = suggestion(figure, FIGURES) or f"known: {', '.join(FIGURES)}"
        raise ConfigError(f"require={text!r}: no figure {figure!r}; {hint}")
    if (figure == "correct") == bool(operator):
        what = "has no bound" if operator else "needs a bound"
        raise ConfigError(f"require={text!r}: {figure!r} {what}; {FORM}")
    return Condition(figure, operator, bound)
