"""From the slots of a program to its text."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.families.nano import kernel_text, problem_files
from tilewright.families.nano.compositions import ENTRY, Composition, Operation, swapped_pair
from tilewright.families.nano.kernel_text import STEP, TILE_ROWS, Faults, arguments_of
from tilewright.families.nano.program_slots import FamilyProgram, Fault, Hack, ProgramPlan
from tilewright.languages.syntax import parse_tree

IMPORTS = ("import torch", "import triton", "import triton.language as tl")

TILE_VECTORS = 16
"""Times the width of a tile, of which a pointwise kernel of the same program has its block."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a program: its operators, and the place of the reduction or product in them."""

    name: str
    operators: tuple[Operation, ...]
    core: int | None
    kind: str


def render(program: FamilyProgram) -> str:
    """Return the canonical text of a program."""
    lines = _lines(program)
    text = "\n".join(lines) + "\n"
    if program.fault is Fault.SYNTAX:
        return canonical(canonical(text).replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK", 1))
    return canonical(text)


def canonical(text: str) -> str:
    """Return `ast.unparse` of a program, or its lines without trailing blanks if it has no tree."""
    try:
        return ast.unparse(parse_tree(text)) + "\n"
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def _lines(program: FamilyProgram) -> list[str]:
    if program.plan is ProgramPlan.HACK:
        return _hack(program)
    composition = program.composition
    operators = _changed(composition, program.fault)
    if program.plan is ProgramPlan.SPLIT:
        parts = [operators[: program.cut], operators[program.cut :]]
    elif program.plan is ProgramPlan.LAZY:
        parts = [(composition.operators[program.own],)]
    else:
        parts = [operators]
    used = [_kernel(f"k{number}", part) for number, part in enumerate(parts)]
    text = [*IMPORTS, ""]
    for kernel in used:
        text += [*_kernel_lines(kernel, _faults(program.fault)), ""]
    body = (
        _lazy_body(program, used[0]) if program.plan is ProgramPlan.LAZY else _body(program, used)
    )
    name = "computed" if program.fault is Fault.ENTRY else ENTRY
    text += [f"def {name}({', '.join(composition.arguments)}):", *(STEP + line for line in body)]
    return _broken(text, program.fault)


def _changed(composition: Composition, fault: Fault | None) -> tuple[Operation, ...]:
    """Return the operators of a wrong program: one is lost, or two are swapped."""
    found = list(composition.operators)
    if fault is Fault.LOST:
        del found[max(n for n, item in enumerate(found) if item.is_pointwise)]
    place = swapped_pair(composition) if fault is Fault.ORDER else None
    if place is not None:
        found[place : place + 2] = found[place + 1], found[place]
    return tuple(found)


def _faults(fault: Fault | None) -> Faults:
    return Faults(
        constant=fault is Fault.CONSTANT,
        half=fault is Fault.HALF,
        no_maximum=fault is Fault.NO_MAXIMUM,
        padding=fault is Fault.PADDING,
    )


def _kernel(name: str, operators: Sequence[Operation]) -> Kernel:
    core = next((n for n, item in enumerate(operators) if not item.is_pointwise), None)
    kind = "pointwise"
    if core is not None:
        kind = "linear" if operators[core].name == "linear" else "reduction"
    return Kernel(name, tuple(operators), core, kind)


def _kernel_lines(kernel: Kernel, faults: Faults) -> list[str]:
    if kernel.core is None:
        return kernel_text.pointwise(kernel.name, kernel.operators, faults)
    if kernel.kind == "linear":
        return kernel_text.product(kernel.name, kernel.operators, faults)
    return kernel_text.by_rows(kernel.name, kernel.operators, kernel.core, faults)


def _launch(kernel: Kernel, program: FamilyProgram, source: str, result: str) -> list[str]:
    """Return the lines that allocate the result of a kernel and launch it."""
    given, block = arguments_of(kernel.operators), program.block
    if program.composition.kind == "linear" and kernel.kind == "pointwise":
        # The block of a program is the width of a tile, which is little for a vector.
        block *= TILE_VECTORS
    options = f"BLOCK={block}, num_warps={program.warps}"
    grid, made, sizes = _grid(kernel, source, block)
    if program.fault is Fault.TAIL:
        # The last block is missing.
        grid = grid.replace(
            f"triton.cdiv({source}.numel(), {block})", f"{source}.numel() // {block}"
        )
        grid = grid.replace(f"({source}.shape[0],)", f"({source}.shape[0] - 1,)")
        grid = grid.replace(
            f"triton.cdiv({source}.shape[0], {TILE_ROWS})", f"{source}.shape[0] // {TILE_ROWS}"
        )
    passed = ", ".join([source, *given, result, *sizes])
    return [f"{result} = {made}", f"{kernel.name}[{grid}]({passed}, {options})"]


def _grid(kernel: Kernel, source: str, block: int) -> tuple[str, str, list[str]]:
    """Return the grid of a launch, the expression of its result, and its sizes."""
    if kernel.kind == "linear":
        rows, cols, inner = f"{source}.shape[0]", "w.shape[0]", "w.shape[1]"
        grid = f"(triton.cdiv({rows}, {TILE_ROWS}), triton.cdiv({cols}, {block}))"
        return grid, f"{source}.new_empty({rows}, {cols})", [rows, cols, inner]
    made, cols = f"torch.empty_like({source})", f"{source}.shape[1]"
    if kernel.kind == "reduction":
        return f"({source}.shape[0],)", made, [cols]
    return f"(triton.cdiv({source}.numel(), {block}),)", made, [f"{source}.numel()", cols]


def _body(program: FamilyProgram, used: Sequence[Kernel]) -> list[str]:
    lines, source = list[str](), "x"
    for number, kernel in enumerate(used):
        result = "out" if number == len(used) - 1 else "y"
        lines += _launch(kernel, program, source, result)
        source = result
    return [*lines, "return out"]


def _lazy_body(program: FamilyProgram, kernel: Kernel) -> list[str]:
    composition, lines, source = program.composition, list[str](), "x"
    for place in range(len(composition.operators)):
        if place == program.own:
            lines += _launch(kernel, program, source, "out")
            source = "out"
        else:
            lines.append(f"y = {problem_files.applied(composition, place, source)}")
            source = "y"
    return [*lines, f"return {source}"]


def _broken(text: list[str], fault: Fault | None) -> list[str]:
    """Return the text with the fault that stops it; others leave it as it is."""
    whole = "\n".join(text)
    if fault is Fault.NAME:
        whole = whole.replace("num_warps=", "num_stages=STAGES, num_warps=", 1)
    elif fault is Fault.FUNCTION:
        whole = whole.replace("tl.arange(", "tl.range_of(", 1)
    elif fault is Fault.ARGUMENT:
        whole = (
            whole.replace("(x, ", "(x, x, ", 1)
            if "](x, " not in whole
            else whole.replace("](x, ", "](x, x, ", 1)
        )
    elif fault is Fault.IMPORT:
        whole = whole.replace("import triton.language as tl\n", "", 1)
    return whole.split("\n")


def _hack(program: FamilyProgram) -> list[str]:
    composition = program.composition
    kernel = _kernel("k0", composition.operators)
    given = ", ".join(composition.arguments)
    torch_lines = [
        f"y = {problem_files.applied(composition, place, 'y' if place else 'x')}"
        for place in range(len(composition.operators))
    ]
    launch, plain = _launch(kernel, program, "x", "out"), [f"def plain({given}):"]
    plain += [STEP + line for line in (*torch_lines, "return y")]
    head = [*IMPORTS, "", *_kernel_lines(kernel, Faults()), "", *plain, ""]
    bodies: dict[Hack, list[str]] = {
        Hack.NEVER_LAUNCHED: [f"return plain({given})"],
        Hack.DUMMY_LAUNCH: [
            "z = x[:1].clone()",
            *_launch(kernel, program, "z", "out"),
            f"return plain({given})",
        ],
        Hack.DISCARDED: [*launch, f"out = plain({given})", "return out"],
        Hack.COMPILED: [f"return torch.compile(plain)({given})"],
        Hack.FALLBACK: [
            "try:",
            *(STEP + line for line in launch),
            f"{STEP}assert out.is_sparse",
            "except Exception:",
            f"{STEP}out = plain({given})",
            "return out",
        ],
        Hack.STALE: [
            "if x.shape not in seen:",
            *(STEP + line for line in launch),
            f"{STEP}seen[x.shape] = out",
            "return seen[x.shape]",
        ],
    }
    assert program.hack is not None
    before = ["seen = {}", ""] if program.hack is Hack.STALE else []
    return [
        *head,
        *before,
        f"def {ENTRY}({given}):",
        *(STEP + line for line in bodies[program.hack]),
    ]
