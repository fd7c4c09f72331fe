"""The folder of the warm hosts, and the answers of a host."""

from __future__ import annotations

import os
import socket

import pytest

from tilewright.executors.host_messages import (
    STATUS,
    HostStatus,
    connect,
    decode_status,
    encode_status,
    host_folder,
    is_this_user,
)
from tilewright.wire.frames import Frame, FrameError

UP = HostStatus(1, "0.1.0", "/tmp/home", clients=0, supervisors=1, idle_s=2.5, ends_in_s=597.5)


@pytest.mark.parametrize("status", [UP, HostStatus(1, "0.1.0", "/h", 1, 1, 0.0, None)])
def test_an_answer_is_read_as_it_was_written(status):
    assert decode_status(Frame(STATUS, encode_status(status))) == status


@pytest.mark.parametrize(
    "change",
    [{"pid": "1"}, {"clients": True}, {"idle_s": "long"}, {"ends_in_s": "soon"}, {"more": 1}],
)
def test_an_answer_of_another_form_is_refused(change):
    with pytest.raises(FrameError):
        decode_status(Frame(STATUS, {**encode_status(UP), **change}))
    with pytest.raises(FrameError):
        decode_status(Frame("other", encode_status(UP)))


def test_the_folder_is_of_this_user_alone(tmp_path):
    folder = host_folder(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert host_folder(tmp_path) == folder


def test_a_folder_that_others_can_enter_is_refused(tmp_path):
    host_folder(tmp_path).chmod(0o711)
    with pytest.raises(PermissionError, match="not a folder of this user alone"):
        host_folder(tmp_path)


def test_a_link_to_a_folder_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / f"tilewright-hosts-{os.getuid()}").symlink_to(tmp_path / "real")
    with pytest.raises(PermissionError):
        host_folder(tmp_path)


def test_nothing_is_connected_where_nobody_listens(tmp_path):
    assert connect(tmp_path / "none.sock") is None
    (tmp_path / "file.sock").write_text("no socket")
    assert connect(tmp_path / "file.sock") is None


def test_the_other_end_of_a_pair_belongs_to_this_user():
    first, second = socket.socketpair()
    assert is_this_user(first)
    first.close()
    second.close()
