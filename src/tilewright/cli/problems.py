"""`tilewright problems`: list what is there, show one, begin a new one."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from tilewright.cli.lines import say
from tilewright.cli.render import facts, show, table
from tilewright.problems.new import write_new
from tilewright.problems.reader import BUNDLED, bundled_names, find_problem
from tilewright.records import Problem

__all__ = ["command"]


@click.group("problems")
def command() -> None:
    """List problems, show one, or begin a new one."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document instead of a table.")
def list_problems(as_json: bool) -> int:
    """List the bundled problems."""
    found = [(name, find_problem(name)) for name in bundled_names()]
    if as_json:
        rows = [
            {
                "address": name,
                "kind": problem.kind,
                "entry": problem.entry,
                "cases": [case.name for case in problem.cases],
                "about": about(problem),
                "candidates": [str(path) for path in candidates_of(name)],
            }
            for name, problem in found
        ]
        click.echo(json.dumps(rows, indent=1))
        return 0
    made = table("problem", "kind", "cases", "about", right=(2,))
    for name, problem in found:
        made.add_row(name, problem.kind, str(len(problem.cases)), Text(about(problem)))
    show(made)
    say(f"next: tilewright problems show {found[0][0]}")
    return 0


@command.command("show")
@click.argument("address")
@click.option("--json", "as_json", is_flag=True, help="Print one document instead of the text.")
def show_problem(address: str, as_json: bool) -> int:
    """Show the problem at ADDRESS: a file, a folder, or the name of a bundled problem."""
    problem = find_problem(address)
    paths = candidates_of(problem.id.removeprefix("bundled/"))
    if as_json:
        document: dict[str, Any] = problem.model_dump(mode="json")
        document |= {"about": about(problem), "candidates": [str(path) for path in paths]}
        click.echo(json.dumps(document, indent=1))
        return 0
    show(problem_view(problem, paths))
    candidate = paths[0] if paths else "CANDIDATE"
    say(f"next: tilewright eval {candidate} --problem {address}")
    return 0


@command.command("new")
@click.argument("name")
@click.option("--dir", "parent", metavar="DIR", default=".", help="Where the folder NAME is made.")
def new_problem(name: str, parent: str) -> int:
    """Write a problem that works, and a candidate that solves it, into a new folder NAME."""
    problem, candidate = write_new(name, Path(parent))
    click.echo(problem)
    click.echo(candidate)
    say(f"next: tilewright eval {candidate} --problem {problem}")
    return 0


def about(problem: Problem) -> str:
    """Return the first line of the problem's docstring."""
    text = ast.get_docstring(ast.parse(problem.source.text)) or ""
    return text.partition("\n")[0]


def candidates_of(name: str) -> list[Path]:
    """Return the bundled candidates of a bundled problem; none for others."""
    if name not in bundled_names():
        return []
    return sorted(path for path in (BUNDLED / name / "candidates").glob("*") if path.is_file())


def problem_view(problem: Problem, candidates: list[Path]) -> RenderableType:
    """Return what is known of a problem, and its source."""
    cases = [
        f"{case.name}: {', '.join(f'{key}={value}' for key, value in case.params.items())}"
        for case in problem.cases
    ]
    sizes = [f"{name} {low} to {high}" for name, (low, high) in problem.sizes.items()]
    rows = facts(
        [
            ("problem", problem.id),
            ("about", about(problem)),
            ("kind", problem.kind),
            ("entry point", problem.entry),
            ("cases", "\n".join(case.removesuffix(": ") for case in cases)),
            ("hidden sizes", ", ".join(sizes)),
            ("contents", "all" if problem.contents is None else ", ".join(problem.contents)),
            ("gradients of", ", ".join(problem.grads)),
            ("may overwrite", ", ".join(problem.donates)),
            ("precision", problem.precision),
            ("mode", problem.mode if problem.kind == "module" else ""),
            ("candidates", "\n".join(path.name for path in candidates)),
        ]
    )
    return Group(rows, Text(""), Text(problem.source.text.rstrip()))
