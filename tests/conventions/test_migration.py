"""The migration page holds every renamed setting, option and module, and points at what exists."""

from __future__ import annotations

from pathlib import Path

from tilewright.cli.renamed_options import RENAMED_OPTIONS
from tilewright.config import RENAMED_SETTINGS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "migration.md"
MOVES = ROOT / "docs" / "_module_moves.txt"


def test_the_page_lists_every_renamed_setting_and_option():
    text = PAGE.read_text(encoding="utf-8")
    for old, new in RENAMED_SETTINGS.items():
        assert f"| `{old}` | `{new}` |" in text
    for verb, names in RENAMED_OPTIONS.items():
        for old, new in names.items():
            assert f"| `{verb}` | `{old}` | `{new}` |" in text


def test_every_moved_module_is_where_the_list_says():
    rows = [line.split() for line in MOVES.read_text(encoding="utf-8").splitlines()]
    assert [old for old, *_ in rows] == sorted({old for old, *_ in rows})
    for _, *new in rows:
        assert new
        for name in new:
            path = ROOT / "src" / name.replace(".", "/")
            assert path.is_dir() or path.with_suffix(".py").is_file(), name
