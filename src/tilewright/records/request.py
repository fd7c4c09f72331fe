"""The request for one evaluation: the candidate, its baselines, rules, limits and timing."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from tilewright.records.base import Record
from tilewright.records.problem import Problem, SourceFile

Protocol = Literal["strict", "official"]
COMPILE_MODES = {"compile": "default", "max-autotune": "max-autotune"}
"""Baselines that torch compiles, with the mode of `torch.compile`."""
RESERVED = {"candidate", "eager", *COMPILE_MODES}
"""Names that a baseline from a file may not have: each belongs to another implementation."""


def collide(one: str, other: str) -> bool:
    """Tell whether two paths are equal, or one would have to be a folder of the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


class Candidate(Record):
    """Source files, the language they are written in, and the name they export."""

    language: str
    files: tuple[SourceFile, ...] = Field(min_length=1)
    """The first file is the one that is loaded."""
    entry: str
    allow_imports: tuple[str, ...] = ()
    """Host folders of packages that the runner may import, mounted read-only."""

    @field_validator("files")
    @classmethod
    def _files_lie_apart(cls, files: tuple[SourceFile, ...]) -> tuple[SourceFile, ...]:
        for place, file in enumerate(files):
            for other in files[:place]:
                if collide(file.path, other.path):
                    raise ValueError(f"files {other.path!r} and {file.path!r} collide")
        return files


class Baseline(Record):
    """A baseline of a speed-up: the eager or compiled reference, or another candidate."""

    name: str
    """`eager` for that kind, `compile` or `max-autotune` for `compile`, else a name of its own."""
    kind: Literal["eager", "compile", "candidate"]
    """`compile` is torch.compile; a baseline named `max-autotune` uses that mode."""
    candidate: Candidate | None = None
    """The program of a `candidate`; with `compile` one to compile instead of the reference."""

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Baseline:
        # The judge and the timer tell implementations apart by name.
        names = {"eager": {"eager"}, "compile": set(COMPILE_MODES)}.get(self.kind)
        if names is not None and self.name not in names:
            wanted = " or ".join(sorted(names))
            raise ValueError(f"a baseline of kind {self.kind} has the name {wanted}")
        if names is None and self.name in RESERVED:
            raise ValueError(f"the name {self.name!r} belongs to another implementation")
        if (self.kind, self.candidate is None) in (("eager", False), ("candidate", True)):
            raise ValueError(f"baseline {self.name!r}: kind {self.kind} with a wrong `candidate`")
        return self


class Rules(Record):
    """Rules that decide which candidates are accepted. Every report records them."""

    precision: Literal["tf32", "fp32"] = "tf32"
    """Precision of float32 matrix products, in the reference and in every implementation."""
    require_custom_kernel: bool = False
    """Reject a candidate that launches no kernel of its own, even one in plain torch."""
    deny_labels: tuple[str, ...] = ()
    """Labels that reject a candidate, for example `library_call`."""


class TimingPlan(Record):
    """How long and how exactly to time."""

    enabled: bool = True
    """`false`: check correctness only, without any timing."""
    min_blocks: int = Field(default=20, ge=4)
    """Fewest ABBA blocks of one case. On a CPU half of them are enough for short calls, and where a
    case is timed in several processes."""
    max_blocks: int = Field(default=100, ge=4)
    """Most ABBA blocks of one case."""
    target_ci_half_width: float = Field(default=0.01, gt=0)
    """Stop when the half-width of the 95 % confidence interval of the log ratio is at most this. On
    a CPU, short calls stop at a wider one, and everywhere calls that differ between processes."""
    max_s: float = Field(default=3.0, gt=0)
    """Most seconds of timed calls for each case and baseline."""
    max_problem_s: float = Field(default=4.0, gt=0)
    """Most seconds of timed calls for each baseline of a problem with several cases, of which each
    gets an equal part. After them no additional process replicate begins. If a single case is timed
    on a GPU, one still begins where the interval excludes 1."""
    timed_cases: int = Field(default=4, ge=1)
    """Most cases of a problem that are timed: the smallest, the largest and some between them, by
    the bytes of their inputs. Correctness is checked on all."""
    extra_replicates: int = Field(default=2, ge=0, le=8)
    """GPU only: most additional process replicates while the difference could be noise. The number
    doubles if the result claims a speed-up or a slow-down."""


class Limits(Record):
    """Resource limits of one candidate."""

    memory_bytes: int = Field(default=4 << 30, gt=0)
    """Memory of one process of the candidate."""
    tmpfs_bytes: int = Field(default=512 << 20, gt=0)
    """Size of the writable file system in the sandbox."""
    processes: int = Field(default=64, gt=0)
    """Most processes and threads of the candidate."""
    build_s: float = Field(default=180.0, gt=0)
    """Most seconds of compilation."""
    load_s: float = Field(default=30.0, gt=0)
    """Most seconds until the candidate is imported and constructed."""
    call_timeout_s: float = Field(default=20.0, gt=0)
    """Most seconds of one call, three times as many if other processes keep the core that it needs.
    On a GPU the first call of a process or a case has three times as long."""
    exit_s: float = Field(default=2.0, gt=0)
    """Most seconds until the process has ended after the last call; more than 2 count as 2."""
    total_timeout_s: float = Field(default=300.0, gt=0)
    """Most seconds of the whole evaluation."""
    stdout_bytes: int = Field(default=65536, gt=0)
    """Bytes of the candidate's stdout and stderr that are kept."""


class EvalRequest(Record):
    """One candidate, one problem, and how to evaluate the candidate."""

    problem: Problem
    candidate: Candidate
    baselines: tuple[Baseline, ...] = (Baseline(name="eager", kind="eager"),)
    protocol: Protocol = "strict"
    rules: Rules = Rules()
    timing: TimingPlan = TimingPlan()
    limits: Limits = Limits()
    device: str = "cpu"
    trace: bool = False
    """GPU only: list the kernels of one call with torch's profiler. It takes seconds more."""
    require_isolation: tuple[str, ...] = ()
    """Isolation layers that must be active before any code of the candidate runs."""
    seed: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}$")
    """The 128-bit root seed in hexadecimal. `None`: a secret random seed."""

    @field_validator("baselines")
    @classmethod
    def _names_differ(cls, baselines: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
        names = [one.name for one in baselines]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two baselines have the name {name!r}")
        return baselines

    @property
    def allows_tf32(self) -> bool:
        """Tell whether float32 products may be rounded to tf32, by the judge and all runners."""
        return self.rules.precision == "tf32" and self.problem.precision != "fp32"
