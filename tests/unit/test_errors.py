"""Errors of the system become those of tilewright: a full disk is no wrong setting."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tilewright.errors import ConfigError, DiskFailed, DiskFull, writing


def test_a_full_disk_has_the_status_of_a_fault_of_the_machine():
    full = Path("/dev/full")
    with pytest.raises(DiskFull, match="log: cannot be written: no space") as found, writing("log"):
        full.write_text("a line")
    assert found.value.exit_code == 4


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_a_failing_disk_is_no_wrong_setting_either(number):
    with pytest.raises(DiskFailed, match="log: cannot be written") as found, writing("log"):
        raise OSError(number, "failed")
    assert (found.value.exit_code, found.value.retryable) == (4, True)


def test_any_other_file_that_cannot_be_written_is_a_wrong_setting(tmp_path):
    with pytest.raises(ConfigError, match="a folder, not a file") as found, writing("log"):
        tmp_path.write_text("a line")
    assert found.value.exit_code == 2
    assert not isinstance(found.value, DiskFull)
