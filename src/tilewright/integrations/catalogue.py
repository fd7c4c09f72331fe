"""The integrations as data: what each maps, and what it refuses. It imports none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilewright.integrations.packages import (
    INSPECT,
    LOGGERS,
    OLD_VERIFIERS,
    OPENENV,
    VERIFIERS,
    Package,
    in_range,
)
from tilewright.integrations.packages import installed as version_of

State = Literal["ready", "not installed", "needs no package", "not a tested version"]


@dataclass(frozen=True)
class Integration:
    """One integration of another tool."""

    name: str
    tool: str
    package: str
    """Name of the package in an index; empty: the tool is a repository alone."""
    tested: str
    """Version of the tool with which the integration was tested, and how."""
    module: str
    use: str
    """The line or command that a user writes."""
    maps: tuple[str, ...]
    refuses: tuple[str, ...]
    loses: tuple[str, ...]
    """Content of a report for which the tool has no place."""
    versions: tuple[Package, ...] = ()
    """The extras with the versions that they allow; empty: the integration imports no package."""


INTEGRATIONS = (
    Integration(
        name="kernelbench",
        tool="KernelBench",
        package="kernelbench",
        tested="0.2.0.dev0 at 423217d: its analysis script, and 240 pairs by its evaluator",
        module="tilewright.integrations.kernelbench",
        use="from tilewright.integrations.kernelbench import eval_kernel_against_ref",
        maps=(
            "the arguments and the result of `eval_kernel_against_ref`",
            "run folders with generations, and `eval_results.json`",
        ),
        refuses=(
            "`precision` other than `torch.float32`",
            "`backend` other than `cuda` and `triton`",
            "problems of functions instead of `Model`",
        ),
        loses=(
            "the interval and the findings are in `metadata` alone",
            "an extension that its constructor cannot build: not compiled here, compiled there",
            "`rejected` looks like a wrong output in the fields, and `metadata` tells them apart",
        ),
    ),
    Integration(
        name="flashinfer",
        tool="FlashInfer traces",
        package="flashinfer-bench",
        tested="0.1.2: its classes of the schema",
        module="tilewright.integrations.flashinfer",
        use="tilewright integrations run flashinfer --from DATASET --traces FILE",
        maps=(
            "definitions, workloads and solutions",
            "verdicts as the seven statuses",
            "outputs that are passed in, `const` and `var` axes, stored inputs",
        ),
        refuses=("solutions in other languages than Python and Triton", "`float4_e2m1`"),
        loses=(
            "the interval and the findings are in the report alone",
            "`rejected` is `RUNTIME_ERROR` with the finding in `log`",
            "unjudged, and correct without a time: no trace",
        ),
    ),
    Integration(
        name="gpumode",
        tool="GPU MODE",
        package="",
        tested="reference-kernels at f83cb92: 32 of 42 tasks are read",
        module="tilewright.integrations.popcorn",
        use="tilewright problems import gpumode --from CLONE",
        maps=("`task.yml`, `generate_input` and `ref_kernel`", "the text of the bot"),
        refuses=(
            "checks that do more than compare with the reference",
            "tasks for several GPUs, and tasks in CUDA alone",
        ),
        loses=("the interval and the findings are in the report alone",),
    ),
    Integration(
        name="robustkbench",
        tool="robust-kbench",
        package="",
        tested="its repository at 078f5ba: 211 of 211 forward tasks are read",
        module="tilewright.problems.sets.robustkbench",
        use="tilewright problems import robustkbench --from CLONE",
        maps=("`forward_fn` with the arguments of `Model`", "all configurations as cases"),
        refuses=("backward tasks", "a `Model` that computes something itself"),
        loses=("its own timing and profiling settings",),
    ),
    *(
        Integration(
            name=name,
            tool=tool,
            package=name,
            tested=tested,
            module=f"tilewright.integrations.{name}_logger",
            use=f"--set loop.log={name}, or tilewright report RUN --to {name}",
            maps=("the curves of a run", "its best candidates"),
            refuses=(),
            loses=loses,
            versions=(LOGGERS[name],),
        )
        for name, tool, tested, loses in (
            (
                *("tensorboard", "TensorBoard", "2.21.0"),
                ("values have 32 bits", "the best candidate is a text"),
            ),
            ("trackio", "trackio", "0.43.0", ()),
            ("wandb", "Weights & Biases", "0.31.0, offline", ()),
            (
                *("mlflow", "MLflow", "3.17.2 and 3.18.0, with its SQLite store"),
                ("characters that MLflow refuses in a name become `_`",),
            ),
        )
    ),
    Integration(
        name="pytest",
        tool="pytest",
        package="pytest",
        tested="9.2.0",
        module="tilewright.integrations.pytest_plugin",
        use="@pytest.mark.kernel(problem=...)",
        maps=("a verdict and a requirement as the result of a test",),
        refuses=("figures other than those of the grammar", "positional arguments of the mark"),
        loses=("`incorrect`, `failed` and `rejected` are all a failed test",),
    ),
    Integration(
        name="verifiers",
        tool="verifiers",
        package=VERIFIERS.name,
        tested="0.4.0: vf-eval and vf-validate; 0.2.1: load_environment",
        module="tilewright.integrations.verifiers",
        use="tilewright integrations new verifiers NAME",
        maps=(
            "problems as tasks",
            "the reward by its name",
            "verdict, interval, coverage, seconds and findings as metrics",
            "feedback as the next message",
        ),
        refuses=("unknown rewards and addresses",),
        loses=("the reward has no interval; the metrics `low` and `high` have it",),
        versions=(VERIFIERS, OLD_VERIFIERS),
    ),
    Integration(
        name="openenv",
        tool="OpenEnv",
        package=OPENENV.name,
        tested="0.10.0: openenv validate, its client and its server",
        module="tilewright.integrations.openenv",
        use="tilewright integrations run openenv",
        maps=(
            "problems as tasks of splits",
            "sessions over one pool of devices",
            "each episode as a run folder",
            "the fields of `kernrl` as a view",
        ),
        refuses=("a step without an episode", "messages of more than 8 MiB"),
        loses=("`max_diff` of `kernrl` has no value", "a `seed` draws no inputs"),
        versions=(OPENENV,),
    ),
    Integration(
        name="inspect",
        tool="Inspect",
        package=INSPECT.name,
        tested="0.3.285: inspect eval with a scripted model",
        module="tilewright.integrations.inspect",
        use="inspect eval tilewright/kernels",
        maps=(
            "problems as samples",
            "`correct`, `fast_p` and `fast_p_sure` with their 95 % intervals",
            "verdict and report in the metadata",
        ),
        refuses=("unknown addresses and settings",),
        loses=(
            "`incorrect`, `failed` and `rejected` are all 0; the metadata tells them apart",
            "weak problems count, which `tilewright report` leaves out under strict rules",
        ),
        versions=(INSPECT,),
    ),
)


def installed_version(integration: Integration) -> str | None:
    """Return the version of the tool's package in this environment; `None`: it is not here."""
    return version_of(integration.package) if integration.package else None


def state_of(integration: Integration, version: str | None) -> State:
    """Tell whether an integration works with a version of its package; `None`: not installed."""
    if not integration.versions:
        return "needs no package"
    if version is None:
        return "not installed"
    if any(in_range(version, item) for item in integration.versions):
        return "ready"
    return "not a tested version"


def allowed_range(integration: Integration) -> str:
    """Return the versions that the extras allow; empty: the integration imports no package."""
    return " or ".join(f">={item.first},<{item.below}" for item in integration.versions)


def remedy(integration: Integration) -> str:
    """Return the command that installs the package; empty: there is none."""
    if not integration.versions:
        return ""
    return f"pip install 'tilewright[{integration.versions[0].extra}]', in its own environment"
