"""`tilewright knowledge`: list, show and search the notes that prompts can contain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tilewright.cli.options import JSON, number, option
from tilewright.cli.output import print_line, printable
from tilewright.cli.render import show_result, table
from tilewright.cli.usage_errors import CommandGroup
from tilewright.knowledge.base import KnowledgeModule, load_knowledge
from tilewright.knowledge.retrieval import MAX_MODULES, MAX_TOKENS, ranked, retrieve

FOLDER = option(
    "--knowledge",
    "DIR",
    "Add the modules of this folder. They replace bundled ones with the same names.",
    "folder",
    type=click.Path(path_type=Path),
)


@click.group("knowledge", cls=CommandGroup)
def command() -> None:
    """List, show or search the modules of the knowledge base.

    A module is a short text on hardware, methods or mistakes, which a prompt can contain.
    """


@command.command("list")
@FOLDER
@JSON
def list_modules(folder: Path | None, as_json: bool) -> int:
    """List the modules, with the languages and devices to which they apply."""
    modules = load_knowledge(folder).entries
    made = table("module", "title", "languages", "devices", "tokens", right=(4,), wrap=(1, 3))
    for module in modules:
        made.add_row(*_cells(module))
    show_result(as_json, [row_of(module) for module in modules], made)
    print_line(f"next: tilewright knowledge show {modules[0].name}")
    return 0


@command.command("show")
@click.argument("name")
@FOLDER
@JSON
def show_module(name: str, folder: Path | None, as_json: bool) -> int:
    """Show the module NAME, with its header."""
    (module,) = load_knowledge(folder).modules([name])
    document = row_of(module) | {"text": module.text}
    # Long lines stay whole, so that the output is the file.
    click.echo(json.dumps(document, indent=1) if as_json else printable(module.source.rstrip()))
    return 0


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@option("--language", "NAME", "Only modules that apply to this language.", "language")
@option("--device-model", "NAME", "Model of the device, for example H100.", "device")
@number("--modules", "Most modules.", 1, 100, MAX_MODULES, metavar="N")
@number("--tokens", "Most estimated tokens of all modules.", 1, 1_000_000, MAX_TOKENS, metavar="N")
@FOLDER
@JSON
def search_modules(
    words: tuple[str, ...],
    language: str | None,
    device: str | None,
    modules: int,
    tokens: int,
    folder: Path | None,
    as_json: bool,
) -> int:
    """Search for WORDS as a search does for a prompt, and list the modules that it would show.

    A word scores 3 in a keyword, and 2 in the title or in the name of a device. Modules for certain
    devices are found if WORDS names a bottleneck or the device.
    """
    base, query = load_knowledge(folder), " ".join(words)
    limits = {"most_modules": modules, "most_tokens": tokens}
    found = retrieve(base, query, language=language, device=device, **limits)
    scores = {
        item.module.name: item.score
        for item in ranked(base, query, language=language, device=device)
    }
    made = table(
        "score", "module", "title", "languages", "devices", "tokens", right=(0, 5), wrap=(2, 4)
    )
    for module in found:
        made.add_row(scores[module.name], *_cells(module))
    rows = [row_of(module) | {"score": scores[module.name]} for module in found]
    show_result(as_json, rows, made)
    if found:
        print_line(f"next: tilewright knowledge show {found[0].name}")
    else:
        print_line("no module fits these words; tilewright knowledge list shows all")
    return 0


def row_of(module: KnowledgeModule) -> dict[str, Any]:
    """Return the JSON form of a module, without its text."""
    header = module.header.model_dump(mode="json")
    counted = {"tokens": module.tokens, "digest": module.digest}
    return {"name": module.name, "about": module.about} | header | counted


def _cells(module: KnowledgeModule) -> tuple[object, ...]:
    header = module.header
    languages, devices = ", ".join(header.languages), ", ".join(header.devices)
    return module.name, header.title, languages, devices, module.tokens
