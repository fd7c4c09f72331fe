"""The page on presets: where paper and code of Dr. Kernel disagree, and every setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tilewright.rl.paper_vs_code import DISAGREEMENTS, settings_of, stance
from tilewright.rl.preset_text import explain
from tilewright.rl.presets import PRESETS

Table = Callable[[tuple[str, ...], Sequence[tuple[str, ...]]], str]
INTRODUCTION = """# Presets

Estimators of `tilewright.rl`: *Dr. Kernel* (arXiv 2602.05885) as it is written, as it was released
(hkust-nlp/KernelGYM at 3a84417), and ours.
`tilewright train replay RUN` shows what each makes of a run.

## Where paper and code disagree

"""


def page(table: Table) -> str:
    """Return the page."""
    names = tuple(f"`{name}`" for name in PRESETS)
    rows = []
    for item in DISAGREEMENTS:
        cells = []
        for each in PRESETS.values():
            said = ", ".join(f"{path} {value}" for path, value in settings_of(each, item).items())
            cells.append(f"{stance(each, item)}{': ' if said else ''}{said}")
        rows.append((str(item.number), item.topic, item.paper, item.code, *cells, item.ours))
    head = ("#", "topic", "paper", "code", *names, "instead of either")
    text = INTRODUCTION + table(head, rows)
    text += "## Every setting\n\nWhere one value stands, it is that of all three.\n\n"
    values = [dict(_flat(each.model_dump())) for each in PRESETS.values()]
    settings = []
    for path in values[0]:
        found = [f"`{each[path]}`" for each in values]
        same = len(set(found)) == 1
        settings.append((f"`{path}`", found[0], *("" if same else cell for cell in found[1:])))
    text += table(("setting", *names), settings)
    text += "## In words and formulas\n\n"
    return text + "\n".join(f"```text\n{explain(each)}```\n" for each in PRESETS.values())


def _flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif prefix:
            yield f"{prefix}{name}", value
