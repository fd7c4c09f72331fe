"""`tilewright problems`: list, show, lint, import and create problems."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from shlex import quote
from typing import Any

import click
from rich.console import Group, RenderableType
from rich.text import Text

from tilewright.cli.lint import command as lint_command
from tilewright.cli.options import JSON, SETTINGS, load_settings, option, usable_home
from tilewright.cli.output import print_line, print_skipped, printable
from tilewright.cli.progress import Progress
from tilewright.cli.render import facts, show, show_result, table
from tilewright.cli.usage_errors import CommandGroup
from tilewright.errors import ProblemError
from tilewright.families.nano.compositions import FAMILY
from tilewright.families.nano.problem_files import GROUPS
from tilewright.problems import imported_sets
from tilewright.problems.description import about
from tilewright.problems.hub import fetch
from tilewright.problems.imported_sets import find_one, find_problems
from tilewright.problems.loader import BUNDLED, bundled_names
from tilewright.problems.template import write_new
from tilewright.records import Problem
from tilewright.registry import catalogue
from tilewright.scoring.report_text import cut
from tilewright.spaces import SPACES

MAX_NAME = 100
"""Most characters of a problem's name that are shown, since foreign files choose the name."""


@click.group("problems", cls=CommandGroup)
def command() -> None:
    """List, show, lint or import problems, or create a new one."""


@command.command("list")
@click.argument("address", default="bundled")
@JSON
@SETTINGS
def list_problems(address: str, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - the options
    """List the problems at ADDRESS: a set or a part of one; default: the bundled problems."""
    settings = load_settings(given)
    skipped: list[str] = []
    found = find_problems(address, settings.home, skipped.append)
    print_skipped(skipped)
    if as_json:
        rows = [
            {
                "address": problem.id.removeprefix("bundled/"),
                **problem.model_dump(include={"kind", "entry", "category"}),
                "cases": [case.name for case in problem.cases],
                "about": about(problem),
                "candidates": [str(path) for path in candidates_of(problem)],
            }
            for problem in found
        ]
        click.echo(json.dumps(rows, indent=1))
        return 0
    lines = ((_name(p), p.kind, len(p.cases), cut(about(p))) for p in found)
    show(table("problem", "kind", "cases", "about", rows=lines, right=(2,)))
    sets = imported_sets.imported(settings.home)
    for name in catalogue("problem_sets"):
        kept = [f"{revision} ({count})" for of, revision, count in sets if of == name]
        known = f"imported: {', '.join(kept)}" if kept else "not imported"
        print_line(f"set {name}: {imported_sets.problem_set(name).about}; {known}")
    print_line(f"spaces of programs: {', '.join(f'spaces/{name}' for name in SPACES)}")
    print_line(f"family of programs: {FAMILY}, {', '.join(f'{FAMILY}/{name}' for name in GROUPS)}")
    _, at, revision = address.partition("@")
    one = f"show {_name(found[0])}{at}{revision}"
    print_line(f"next: tilewright problems {f'lint {address}' if Path(address).exists() else one}")
    return 0


@command.command("show")
@click.argument("address")
@JSON
@SETTINGS
def show_problem(address: str, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - the options
    """Show the problem at ADDRESS: a file, a folder, or a bundled or imported name."""
    problem = find_one(address, load_settings(given).home)
    paths = candidates_of(problem)
    document: dict[str, Any] = problem.model_dump(mode="json")
    document |= {"about": about(problem), "candidates": [str(path) for path in paths]}
    show_result(as_json, document, problem_view(problem, paths))
    candidate = paths[0] if paths else "CANDIDATE"
    print_line(f"next: tilewright eval {candidate} --problem {address}")
    return 0


command.add_command(lint_command)


@command.command("import")
@click.argument("name")
@option("--from", "PATH", "A clone of the set, a folder, or a file of rows.", "source")
@option("--revision", "NAME", "Revision of the Hub dataset, or a name for the content of PATH.")
@SETTINGS
def import_set(name: str, source: str | None, revision: str | None, **given: Any) -> int:  # noqa: ANN401
    """Import the problem set NAME: from the Hub, or from PATH.

    The set is stored under `home`. Its problems then have the addresses NAME, NAME/GROUP and
    NAME/GROUP/3.
    """
    home = usable_home(load_settings(given))
    chosen = imported_sets.problem_set(name)
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress(f"import of {name}", now="reading") as progress,
    ):
        if source is not None:
            path, kept = Path(source), revision or "local"
            if not path.exists():
                raise ProblemError(f"--from {source}: no such file or folder")
        elif chosen.hub is None:
            raise ProblemError(f"{name}: {imported_sets.how_to_import(name)}")
        else:
            progress.note(f"fetching {chosen.hub.dataset}")
            path = Path(folder)
            kept = fetch(chosen.hub, revision or chosen.hub.revision, path)
        found = chosen.read(path, kept)
    before = [n for item, at, n in imported_sets.imported(home) if (item, at) == (name, kept)]
    written = imported_sets.write_set(home, name, kept, found)
    print_skipped(found.skipped)
    instead = f", which replace {before[0]}" if before else ""
    print_line(f"{len(found.problems)} problems of {name}@{kept} are in {written}{instead}")
    print_line(f"next: tilewright problems list {quote(f'{name}@{kept}')}")
    return 0


@command.command("new")
@click.argument("name")
@option("--dir", "DIR", "Folder in which the folder NAME is created.", "parent", default=".")
def new_problem(name: str, parent: str) -> int:
    """Write a working problem and a correct candidate into a new folder NAME."""
    problem, candidate = write_new(name, Path(parent))
    click.echo(problem)
    click.echo(candidate)
    print_line(f"next: tilewright eval {candidate} --problem {problem}")
    return 0


def _name(problem: Problem) -> str:
    return printable(cut(problem.id.removeprefix("bundled/"), MAX_NAME))


def candidates_of(problem: Problem) -> list[Path]:
    """Return the bundled candidates of a bundled problem, and none for any other."""
    name = problem.id.removeprefix("bundled/")
    if not problem.id.startswith("bundled/") or name not in bundled_names():
        return []
    return sorted(path for path in (BUNDLED / name / "candidates").glob("*") if path.is_file())


def problem_view(problem: Problem, candidates: list[Path]) -> RenderableType:
    """Return the properties of a problem, and its source."""
    cases = []
    for case in problem.cases:
        params = ", ".join(f"{key}={value}" for key, value in case.params.items())
        cases.append(f"{case.name}: {params}" if params else case.name)
    variations = problem.input_variations
    sizes = [f"{name} {low} to {high}" for name, (low, high) in problem.size_ranges.items()]
    rows = facts(
        [
            ("problem", cut(problem.id, MAX_NAME)),
            ("about", cut(about(problem))),
            ("category", cut(problem.category, MAX_NAME)),
            ("kind", problem.kind),
            ("entry point", problem.entry),
            ("cases", "\n".join(cases)),
            ("hidden sizes", ", ".join(sizes)),
            ("input variations", "all" if variations is None else ", ".join(variations)),
            ("gradients of", ", ".join(problem.grads)),
            ("may overwrite", ", ".join(problem.writable_inputs)),
            ("loaded buffers", ", ".join(problem.buffers)),
            ("precision", problem.precision),
            ("mode", problem.mode if problem.kind == "module" else ""),
            ("candidates", "\n".join(path.name for path in candidates)),
        ]
    )
    return Group(rows, "", Text(problem.source.text.rstrip()))
