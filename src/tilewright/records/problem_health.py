"""The result of the check that the first evaluation of a problem makes, stored by its digest."""

from __future__ import annotations

from pydantic import Field

from tilewright.records.base import Record
from tilewright.records.request import Protocol

HEALTH_VERSION = 6
"""Version of the check: a stored result of another one is not used."""


class CaseCheck(Record):
    """One case: its generator of inputs, and the answers without work that pass."""

    case: str
    sample_s: float = Field(ge=0)
    """Seconds in which the generator made one input sample."""
    ignores_seed: bool = False
    """Whether two seeds gave equal values."""
    repeatable: bool = True
    """Whether one seed gave equal values twice."""
    shapes_vary: bool = False
    """Whether two seeds gave tensors of other shapes, dtypes or layouts."""
    shares_memory: bool = False
    """Whether a later sample lay in the memory of an earlier one."""
    passing: tuple[str, ...] = ()
    """Answers without work that pass by the rules of the protocol."""
    passing_own_inputs: tuple[str, ...] = ()
    """Further answers that pass, on inputs that the problem's own generator makes."""
    constant: bool = False
    """Whether the outputs depend on no input, under any variation and any weights."""
    cuda_on_cpu: bool = False
    """Whether problem code asked for a CUDA device and got the CPU."""
    cuda_in_reference: bool = False
    """Whether code that a baseline runs did so: a baseline gets no other device, and fails."""
    tf32: bool = True
    """Whether the reference has products that may be rounded to tf32; also if not looked at."""
    constant_inputs: tuple[int, ...] = ()
    """Arguments with the same values under two seeds, which timed calls do not move either: masks
    and integers. Results that follow from these alone can be kept."""
    undefined_share: float = Field(default=0.0, ge=0, le=1)
    """Share of the output elements that the reference never writes."""
    writes_outside: bool = False
    """Whether the reference writes into memory around its arguments."""
    rows: tuple[int, int] | None = None
    """Rows of two samples, and how many of these differ. A table of results can then replace the
    computation. `None`: nothing shows that it can."""
    unchecked: str = ""
    """The part that was not looked at, and why; empty: none."""


class ProblemHealth(Record):
    """The check of a problem under one protocol, on one type of device."""

    version: int
    evaluator: str
    """Version of tilewright."""
    problem_digest: str
    protocol: Protocol
    cases: tuple[CaseCheck, ...] = Field(min_length=1)

    @property
    def unsound(self) -> bool:
        """Whether the reference writes into foreign memory, or no case has a sound output.

        A sound output is defined and depends on its inputs.
        """
        return any(case.writes_outside for case in self.cases) or all(
            case.constant or case.undefined_share == 1.0 for case in self.cases
        )

    @property
    def tf32(self) -> bool:
        """Whether a case has products that may be rounded to tf32."""
        return any(case.tf32 for case in self.cases)

    @property
    def passing(self) -> tuple[str, ...]:
        """Answers without work that pass on every case."""
        return tuple(sorted(set.intersection(*(set(case.passing) for case in self.cases))))

    @property
    def weak_cases(self) -> tuple[CaseCheck, ...]:
        """Cases on which some answer without work passes, or every answer is the same."""
        return tuple(case for case in self.cases if case.passing or case.constant)

    def case(self, name: str) -> CaseCheck | None:
        """Return the check of a case by its name; `None`: there is none."""
        return next((case for case in self.cases if case.case == name), None)
