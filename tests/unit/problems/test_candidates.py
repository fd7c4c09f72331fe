"""Which files of a candidate folder are read, and which are refused."""

from __future__ import annotations

import os
import time

import pytest

from tilewright.errors import ConfigError
from tilewright.problems.candidates import MAX_BYTES, MAX_ENTRIES, read_files

SOURCE = "def work(x):\n    return x\n"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "mine"
    made.mkdir()
    (made / "work.py").write_text(SOURCE)
    return made


def refused(folder) -> str:
    with pytest.raises(ConfigError) as raised:
        read_files(str(folder))
    return str(raised.value)


def test_data_files_belong_to_the_candidate(folder):
    (folder / "data").mkdir()
    (folder / "data" / "settings.json").write_text('{"factor": 2}\r\n', newline="")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "work.txt").write_text("x")
    (folder / ".hidden").write_text("x")
    (folder / "a table.bin").write_bytes(b"\xff\xfe\x00")

    found = {file.path: file.data for file in read_files(str(folder))}

    assert found == {
        "work.py": SOURCE.encode(),
        "data/settings.json": b'{"factor": 2}\r\n',
        "a table.bin": b"\xff\xfe\x00",
    }


def test_a_folder_of_many_files_is_refused_quickly(folder):
    for number in range(MAX_ENTRIES + 50):
        (folder / f"{number}.txt").touch()
    start = time.monotonic()

    assert f"more than {MAX_ENTRIES} files" in refused(folder)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("target", ["/etc/passwd", "/etc"])
def test_a_link_out_of_the_folder_is_refused(folder, target):
    (folder / "settings.json").symlink_to(target)

    assert "a link out of the folder" in refused(folder)


def test_a_pipe_is_refused(folder):
    os.mkfifo(folder / "settings.json")

    assert "neither a file nor a folder" in refused(folder)


def test_a_name_that_is_no_text_is_refused(folder):
    (folder / os.fsdecode(b"\xff.json")).touch()

    assert "not UTF-8" in refused(folder)


def test_the_sizes_of_a_file_and_of_a_folder_are_limited(folder):
    (folder / "one.txt").write_text("x" * (MAX_BYTES // 2))
    (folder / "two.txt").write_text("x" * (MAX_BYTES // 2))
    assert "more than" in refused(folder)

    (folder / "one.txt").write_text("x" * (MAX_BYTES + 1))
    assert "larger than" in refused(folder)


def test_an_endless_device_is_refused():
    assert "larger than" in refused("/dev/zero")


def test_a_folder_without_source_is_refused(folder):
    (folder / "work.py").rename(folder / "work.txt")

    assert "no source file" in refused(folder)


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
