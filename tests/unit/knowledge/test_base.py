"""Modules and indexes of the knowledge base: what they hold, and which folders are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import ConfigError
from tilewright.knowledge.base import (
    BUNDLED,
    MAX_FILE_BYTES,
    KnowledgeBase,
    load_knowledge,
    read_module,
)
from tilewright.records import digest_text

MODULE = """---
title: {title}
keywords: [planted fact]
languages: [any]
devices: [any]
sources: [a document]
---

{text}
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a module, and another one in a folder below."""
    root = tmp_path / "notes"
    write(
        root / "index.md", "# Notes\n\n- [One](one.md): the first\n* [More](more/index.md): below\n"
    )
    write(root / "more" / "index.md", "# More\n\n- [Two](two.md)\n")
    write(root / "one.md", MODULE.format(title="One", text="The first text."))
    write(root / "more" / "two.md", MODULE.format(title="Two", text="The second text."))
    return root


def test_modules_of_a_folder_and_of_those_below_are_read_by_name(folder):
    base = KnowledgeBase.load(folder)
    assert [module.name for module in base.entries] == ["more/two", "one"]
    assert [(name, header.title) for name, header in base.index()] == [
        ("more/two", "Two"),
        ("one", "One"),
    ]
    one, two = base.modules(["one", "more/two"])
    assert (one.text, one.about) == ("The first text.", "the first")
    assert (two.text, two.about) == ("The second text.", "")
    assert one.general
    assert one.header.sources == ("a document",)


def test_a_digest_names_the_whole_file_and_finds_its_module(folder):
    base = KnowledgeBase.load(folder)
    one, two = base.modules(["one", "more/two"])
    assert one.digest == digest_text((folder / "one.md").read_text("utf-8")) != two.digest
    assert base.by_digest(one.digest) == one
    write(folder / "one.md", MODULE.format(title="Other", text="The first text."))
    changed = KnowledgeBase.load(folder)
    assert changed.modules(["one"])[0].digest != one.digest
    with pytest.raises(ConfigError, match=f"digest {one.digest[:12]}; a file was changed"):
        changed.by_digest(one.digest)


def test_a_copy_of_a_module_reads_back_equal(folder):
    for module in (*KnowledgeBase.load(folder).entries, *load_knowledge().entries):
        assert read_module(module.name, module.source, "a copy", module.about) == module


def test_line_ends_and_a_byte_order_mark_change_no_digest(folder):
    before = KnowledgeBase.load(folder)
    raw = (folder / "one.md").read_bytes()
    (folder / "one.md").write_bytes(b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n"))
    assert KnowledgeBase.load(folder) == before


def test_tokens_grow_with_title_and_text():
    short = read_module("a", MODULE.format(title="T", text="x" * 9), "a")
    long = read_module("a", MODULE.format(title="T", text="x" * 309), "a")
    assert long.tokens - short.tokens == 100
    assert read_module("a", MODULE.format(title="TTTT", text="x" * 9), "a").tokens > short.tokens


def test_a_folder_is_added_to_the_bundled_modules_and_replaces_equal_names(folder):
    name = "hardware/h100"
    write(
        folder / "index.md", "- [One](one.md)\n- [More](more/index.md)\n- [H](hardware/h100.md)\n"
    )
    write(folder / f"{name}.md", MODULE.format(title="Ours", text="Our own text."))
    base = load_knowledge(folder)
    bundled = {module.name for module in load_knowledge().entries}
    assert {module.name for module in base.entries} == bundled | {"one", "more/two"}
    assert base.modules([name])[0].header.title == "Ours"
    assert load_knowledge().modules([name])[0].header.title != "Ours"


def test_an_unknown_name_is_refused_with_a_near_one():
    with pytest.raises(ConfigError, match=r"no module 'hardware/h10' .* did you mean"):
        load_knowledge().modules(["hardware/h10"])
    with pytest.raises(ConfigError, match="see tilewright knowledge list"):
        load_knowledge().modules(["zzzzzz"])


def refused(folder: Path, *parts: str) -> None:
    with pytest.raises(ConfigError) as caught:
        KnowledgeBase.load(folder)
    for part in parts:
        assert part in str(caught.value)


def test_a_folder_without_an_index_is_refused_with_its_path_and_the_remedy(folder):
    (folder / "more" / "index.md").unlink()
    refused(folder, f"{folder / 'more'}: it has no index.md", "write one", "add-knowledge.md")
    (folder / "index.md").unlink()
    refused(folder, f"{folder}: it has no index.md", "write one")
    refused(folder / "missing", "missing: no such folder")


def test_an_index_and_the_files_of_its_folder_must_agree(folder):
    write(folder / "three.md", MODULE.format(title="Three", text="Text."))
    refused(folder, f"{folder / 'three.md'}: no index.md lists it")
    write(folder / "index.md", "- [One](one.md)\n- [A](gone.md)\n")
    refused(folder, f"{folder / 'gone.md'}: ", "lists it, and it is missing")
    write(folder / "index.md", "- [One](one.md)\n- [One](one.md)\n")
    refused(folder, f"{folder / 'one.md'}: an index lists it twice")
    write(folder / "index.md", "# Empty\n")
    refused(folder, "index.md: it lists no module")


@pytest.mark.parametrize("link", ["../one.md", "/etc/passwd.md", "a/../../one.md", "one.txt"])
def test_an_index_names_only_markdown_files_below_its_folder(folder, link):
    write(folder / "index.md", f"- [One]({link})\n")
    refused(folder, f"{link}: a line may name Markdown files below its folder")


def test_an_index_may_not_list_itself(folder):
    write(folder / "index.md", "- [Index](index.md)\n")
    refused(folder, "it lists itself")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("No header.\n", "must begin with a header"),
        ("---\ntitle: x\n", "must begin with a header"),
        (MODULE.format(title="a: b: c", text="x"), "the header is no YAML"),
        ("---\n- a list\n---\ntext\n", "expected fields, got"),
        (MODULE.format(title="''", text="x"), "title: "),
        (
            MODULE.replace("sources: [a document]\n", "").format(title="T", text="x"),
            "`sources`",
        ),
        (MODULE.replace("[planted fact]", "[]").format(title="T", text="x"), "keywords: "),
        (MODULE.replace("devices", "device").format(title="T", text="x"), "device"),
        (MODULE.format(title="T", text=""), "no text"),
    ],
)
def test_a_module_with_a_wrong_header_is_refused_with_its_path(folder, text, part):
    file = write(folder / "one.md", text)
    refused(folder, f"{file}: ", part)


def test_files_that_are_no_text_or_too_large_are_refused(folder):
    (folder / "one.md").write_bytes(b"\xff\xfe")
    refused(folder, "one.md: it is not UTF-8", "convert it")
    write(folder / "one.md", MODULE.format(title="T", text="x" * MAX_FILE_BYTES))
    refused(folder, "one.md: it has", "split it")


def test_the_bundled_folder_is_that_of_the_package():
    assert (BUNDLED / "index.md").is_file()
    assert load_knowledge() == KnowledgeBase.load(BUNDLED)
