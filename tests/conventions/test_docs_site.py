"""The documentation site: its links, its side bar, and the verdict table of its first page."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from tests.conventions.tree import ROOT
from tilewright.cli.demo import DEMO, exhibits


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


PAGES, TABLE = module("_site_pages"), module("_demo_table")
PLACES = PAGES.sources()


def relinked(text: str, page: str = "docs/guides/serve.md") -> str:
    return str(PAGES.relinked(text, ROOT / page, PLACES))


def test_a_link_to_a_page_outside_docs_leads_to_its_place_on_the_site():
    assert relinked("[a](../../SECURITY.md#x)") == "[a](../repository/security.md#x)"
    assert relinked("[a](docs/guides/serve.md)", "README.md") == "[a](../guides/serve.md)"


def test_a_link_to_source_becomes_its_text():
    assert relinked("See [`cli`](../../src/tilewright/cli/main.py).") == "See `cli`."


def test_other_hosts_anchors_and_code_stay():
    text = "[a](https://example.org) [b](#c) `[d](nowhere.md)`"
    assert relinked(text) == text


def test_a_link_to_nothing_is_refused():
    with pytest.raises(SystemExit, match=r"docs/guides/serve\.md: no file has the path nowhere"):
        relinked("[a](nowhere.md)")


def test_each_page_is_in_one_list():
    listed = [
        (ROOT / "docs" / holder).parent.joinpath(line).resolve()
        for holder, text in PAGES.side_bar(PLACES).items()
        for line in text.splitlines()
        if line.endswith(".md")
    ]
    places = {place for place in PLACES.values() if place.endswith(".md")} - {PAGES.FIRST}
    wanted = {ROOT / "docs" / place for place in {*places, *PAGES.NESTED, PAGES.API_PAGE}}
    assert len(listed) == len(set(listed))
    assert set(listed) == wanted


def test_both_pages_show_the_table_of_todays_demo():
    tables = {TABLE.table_of((ROOT / name).read_text(encoding="utf-8")) for name in TABLE.PAGES}
    (table,) = tables
    rows = [line.split() for line in table.splitlines() if line[0] != " "][1:]
    shown = {row[0]: (row[1], row[2]) for row in rows}
    wanted = {item.name: item for item in exhibits(DEMO)}
    assert list(shown) == list(wanted)
    for name, (problem, verdict) in shown.items():
        assert problem == wanted[name].problem
        assert verdict in wanted[name].expect


def test_the_pictures_are_small():
    pictures = list((ROOT / "docs" / "images").glob("*.png"))
    # Light and dark of six pages.
    assert len(pictures) == 12
    assert sum(path.stat().st_size for path in pictures) < 1_500_000
