"""The tables of the guide to integrations, from the code of the integrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.integrations import kernelbench, pytest_plugin, requirement
from tilewright.integrations.catalogue import INTEGRATIONS
from tilewright.integrations.verdict_table import (
    FLASHINFER,
    GPU_MODE,
    HARNESSES,
    INSPECT,
    KERNELGYM,
    TABLE,
)

Table = Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]
BEGIN = "<!-- {name}: docs/_generate.py writes this table -->\n"
END = "<!-- end of {name} -->"


def with_tables(page: str, table: Table) -> str:
    """Return the guide with each of its tables replaced by the present one."""
    for name, text in tables(table).items():
        before, begin, rest = page.partition(BEGIN.format(name=name))
        _, end, after = rest.partition(END.format(name=name))
        if not end:
            raise SystemExit(f"docs/guides/integrations.md has no place for the table {name!r}")
        page = f"{before}{begin}\n{text}{end}{after}"
    return page


def tables(table: Table) -> dict[str, str]:
    """Return each table by its name."""
    listed = [
        (
            item.tool,
            item.tested,
            "; ".join(item.maps),
            "; ".join(item.refuses),
            "; ".join(item.loses),
        )
        for item in INTEGRATIONS
    ]
    verdicts = [
        (
            str(ours),
            *map(str, (row.kernelbench, KERNELGYM[ours], row.pytest)),
            *map(str, (HARNESSES[ours], INSPECT[ours], GPU_MODE[ours], FLASHINFER[ours])),
        )
        for ours, row in TABLE.items()
    ]
    refused = [(f"`{name}`", why) for name, why in kernelbench.REASONS.items()]
    marked = [(f"`{name}`", meaning) for name, meaning in pytest_plugin.ARGUMENTS.items()]
    figures = [(f"`{name}`", meaning) for name, meaning in requirement.FIGURES.items()]
    return {
        "tools": table(("tool", "tested version", "maps", "refuses", "loses"), listed),
        "verdicts": table(
            (
                *("verdict", "KernelBench", "KernelGYM", "pytest", "verifiers, OpenEnv"),
                *("Inspect", "GPU MODE", "FlashInfer"),
            ),
            verdicts,
        ),
        "arguments of KernelBench": table(("argument", "why it has no effect"), refused),
        "arguments of the mark": table(("argument", "meaning"), marked),
        "figures": table(("figure", "meaning"), figures),
    }
