"""A file is replaced whole, and a failed write leaves the old one and nothing else."""

from __future__ import annotations

import pytest

from tilewright.records.whole_files import write_whole


def test_a_file_is_made_with_its_folder_and_replaced(tmp_path):
    path = tmp_path / "folder" / "file.json"
    for text in ("one", "two"):
        write_whole(path, text)
        assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
