"""The pages of the documentation site: where each one stands, its links, and the side bar."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FIRST = "index.md"
API_PAGE = "reference/python.md"
"""Written for the site alone: Sphinx reads the docstrings when it builds the page."""
CAPTIONS = ("Tutorials", "Guides", "Reference", "Explanation")
"""Sections of the first page whose pages the side bar lists one by one."""
NESTED = {"adr/index.md": ("adr",), "measurements/README.md": ("measurements", "lab")}
"""Pages that list all other pages of some folders, so that the side bar stays short."""

_FENCE = re.compile(r"^```[^\n`]*\n.*?^```\s*$", re.MULTILINE | re.DOTALL)
# A link or an image; else inline code, which is skipped as a whole.
_LINK = re.compile(r"(!?)\[((?:`[^`]*`|[^\[\]`])*)\]\(([^()\s]+)\)|(`+).+?\4", re.DOTALL)
_SHOT = re.compile(r"^!\[([^\]]*)\]\((\S*images/[\w-]+)-light\.png\)$", re.MULTILINE)


def sources() -> dict[Path, str]:
    """Return the path on the site of each page and file; pages outside `docs` get a folder."""
    found = {
        path: path.relative_to(DOCS).as_posix()
        for path in sorted(DOCS.rglob("*"))
        if path.is_file() and not re.search(r"(?:^|/)_", path.relative_to(DOCS).as_posix())
    }
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("tests/*/README.md")]):
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        short = name.removeprefix("tests/").removesuffix("/README").lower()
        found[path] = f"repository/{short}.md"
    return found


def staged(path: Path, places: dict[Path, str]) -> str:
    """Return the text of a page as the site needs it."""
    text = path.read_text(encoding="utf-8")
    pieces, end = [], 0
    for fence in _FENCE.finditer(text):
        pieces += [relinked(text[end : fence.start()], path, places), fence[0]]
        end = fence.end()
    pieces.append(relinked(text[end:], path, places))
    # Readers in dark mode see the dark picture; the page in the repository names the light one.
    return _SHOT.sub(
        r"![\1](\2-light.png){.only-light}\n![\1](\2-dark.png){.only-dark}", "".join(pieces)
    )


def relinked(text: str, page: Path, places: dict[Path, str]) -> str:
    """Return Markdown without fences, its links changed to paths of the site.

    The site holds no source files. A link to such a file becomes its text.
    """

    def changed(match: re.Match[str]) -> str:
        mark, label, target, code = match.groups()
        if code or re.match(r"[a-z]+:|#", target):
            return match[0]
        name, hash_, anchor = target.partition("#")
        there = (page.parent / name).resolve()
        if not there.exists():
            raise SystemExit(f"{page.relative_to(ROOT)}: no file has the path {target}")
        place = places.get(there)
        if place is None:
            return str(label)
        path = os.path.relpath(place, PurePosixPath(places[page]).parent)
        return f"{mark}[{label}]({path}{hash_}{anchor})"

    return _LINK.sub(changed, text)


def side_bar(places: dict[Path, str]) -> dict[str, str]:
    """Return the lists of pages, by the page that holds them: every page is in one list."""
    pages = {place for place in places.values() if place.endswith(".md")} | {API_PAGE}
    left = pages - {FIRST, *NESTED}
    text = (DOCS / FIRST).read_text(encoding="utf-8")
    lists = ""
    for caption in CAPTIONS:
        named = [name for name in _targets(text, caption) if name in left]
        folder = [name for name in sorted(left) if name.startswith(f"{caption.lower()}/")]
        names = list(dict.fromkeys([*named, *folder]))
        lists += toctree(names, caption)
        left -= {*names}
    found = {}
    for page, folders in NESTED.items():
        below = tuple(f"{folder}/" for folder in folders)
        names = sorted(name for name in left if name.startswith(below))
        here = PurePosixPath(page).parent
        shown = [os.path.relpath(name, here) for name in names]
        # The page of the measurements lists them itself.
        found[page] = toctree(shown, hidden=page in places.values())
        left -= {*names}
    return {FIRST: lists + toctree([*NESTED, *sorted(left)], "The repository"), **found}


def _targets(text: str, caption: str) -> Iterator[str]:
    """Yield the targets of the links of one section, in their order."""
    section = re.search(rf"^## {caption}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        raise SystemExit(f"docs/{FIRST} has no section {caption!r}")
    for match in _LINK.finditer(section[1]):
        if match[3]:
            yield match[3].partition("#")[0]


def toctree(names: list[str], caption: str = "", *, hidden: bool = True) -> str:
    """Return a list of pages in the notation of MyST."""
    head = (":hidden:\n" if hidden else "") + (f":caption: {caption}\n" if caption else "")
    return f"\n```{{toctree}}\n{head}\n" + "".join(f"{name}\n" for name in names) + "```\n"


def api_page() -> str:
    """Return the page of the Python API; Sphinx replaces each directive by docstrings."""
    text = "# Python API\n\nThe [guide](../guides/use-from-python.md) shows these in use.\n"
    for title, directives in API.items():
        body = "\n".join(f".. {line}\n" for line in directives)
        text += f"\n## {title}\n\n```{{eval-rst}}\n{body}```\n"
    return text


API = {
    "Evaluate": [
        "autofunction:: tilewright.evaluate",
        "autofunction:: tilewright.evaluate_async",
        "autofunction:: tilewright.api.build_request",
    ],
    "Client of a server": ["autoclass:: tilewright.Client\n   :members:"],
    "Records": [
        f"autoclass:: tilewright.records.{name}\n   :members:"
        for name in ("Candidate", "Problem", "Case", "EvalRequest", "EvalReport")
    ]
    + [
        f"autoclass:: tilewright.records.{name}\n   :members:"
        for name in ("Correct", "Incorrect", "Failed", "Rejected", "Unjudged", "Finding", "Label")
    ],
    "Search": ["automodule:: tilewright.loop.strategies.base\n   :members:"],
    "Training": [
        "autoclass:: tilewright.rl.episodes.Episodes\n   :members:",
        "autoclass:: tilewright.rl.trl_reward.TrlReward\n   :members:",
        "autofunction:: tilewright.rl.verl_score.compute_score",
    ],
    "Settings": ["autofunction:: tilewright.config.load"],
    "Exceptions": ["automodule:: tilewright.errors\n   :members:"],
}
"""Sections of the page, with the directives of each."""
