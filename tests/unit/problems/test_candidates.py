"""Which files of a candidate folder are read."""

from __future__ import annotations

import pytest

from tilewright.errors import ConfigError
from tilewright.problems.candidates import read_files


def test_links_are_followed_only_within_the_folder(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("KEY = 1\n")
    folder = tmp_path / "candidate"
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "kernel.py").write_text("def work(x):\n    return x\n")
    (folder / "main.py").symlink_to("part/kernel.py")
    assert [file.path for file in read_files(str(folder))] == ["main.py", "part/kernel.py"]

    (folder / "more.py").symlink_to(secret)
    with pytest.raises(ConfigError, match=r"more\.py: a link out of the folder"):
        read_files(str(folder))


def test_a_folder_may_itself_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "kernel.py").write_text("def work(x):\n    return x\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert [file.path for file in read_files(str(tmp_path / "link"))] == ["kernel.py"]
