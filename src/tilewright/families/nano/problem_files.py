"""The problems of the family, as source text of problem files."""

from __future__ import annotations

from tilewright.families.nano.compositions import COMPOSITIONS, ENTRY, Composition

LARGE = {"pointwise": (8192, 2048), "reduction": (8192, 2048), "linear": (4096, 1024)}
"""Rows and columns of the timed case: eager latency is 60 to 400 us on an H100 or H200."""
ODD = (37, 1000)
"""Rows and columns of a case that no block divides."""
INNER, ODD_INNER = 1024, 72
"""Columns of the input of a product."""
GROUPS = ("train", "held_out", "rehearsal")
REHEARSED = ("scale_silu_bias", "square_bias_silu")
"""The problems of a rehearsal on a CPU: two for training, with short programs."""


def compositions_of(group: str) -> list[Composition]:
    """Return the compositions of a group of `GROUPS`, one by its name, or all for an empty text.

    Raises:
        KeyError: the family has no such group and no such problem.
    """
    if not group:
        return list(COMPOSITIONS)
    if group == "rehearsal":
        return [item for item in COMPOSITIONS if item.name in REHEARSED]
    if group in GROUPS:
        return [item for item in COMPOSITIONS if item.held_out == (group == "held_out")]
    return [{item.name: item for item in COMPOSITIONS}[group]]


def source_of(composition: Composition) -> str:
    """Return the text of the problem file."""
    title = ", then ".join(item.name for item in composition.operators)
    return (
        f'"""{title[0].upper()}{title[1:]}."""\n\nimport torch\n\nENTRY = "{ENTRY}"\n\n'
        f"CASES = [\n    {_case('odd', composition)},\n    {_case('large', composition)},\n]\n\n\n"
        f"{_inputs(composition)}\n\n{reference_of(composition)}"
    )


def reference_of(composition: Composition) -> str:
    """Return the text of the function that defines the expected output."""
    lines = [f"def reference({', '.join(composition.arguments)}):"]
    lines += [
        f"    x = {applied(composition, place, 'x')}" for place in range(len(composition.operators))
    ]
    return "\n".join([*lines, "    return x", ""])


def reference_text(source: str) -> str:
    """Return the function that defines the expected output, of the text of a problem file."""
    _, start, rest = source.partition("def reference(")
    return f"{start}{rest}" if start else source


def applied(composition: Composition, place: int, value: str) -> str:
    """Return the torch expression of one operator."""
    item = composition.operators[place]
    return item.torch.format(v=value, e=item.argument, c=item.constant)


def _case(name: str, composition: Composition) -> str:
    rows, cols = ODD if name == "odd" else LARGE[composition.kind]
    inner = ODD_INNER if name == "odd" else INNER
    more = f', "inner": {inner}' if composition.kind == "linear" else ""
    return f'{{"name": "{name}", "rows": {rows}, "cols": {cols}{more}}}'


def _inputs(composition: Composition) -> str:
    width = "inner" if composition.kind == "linear" else "cols"
    lines = ["def inputs(case, generator):", '    rows, cols = case["rows"], case["cols"]']
    if width == "inner":
        lines.append('    inner = case["inner"]')
    lines.append(f"    x = torch.randn(rows, {width}, generator=generator)")
    for item in composition.extras:
        shape = {"row": "cols", "full": "rows, cols", "weight": "cols, inner"}[item.extra or "row"]
        drawn = f"torch.randn({shape}, generator=generator)"
        # The rows of a product have the size of the other inputs.
        scaled = f"{drawn} / inner**0.5" if item.extra == "weight" else drawn
        lines.append(f"    {item.argument} = {scaled}")
    return "\n".join([*lines, f"    return {', '.join(composition.arguments)}", ""])
