"""Leases of one device: who may hold it with whom, and who comes first."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tilewright.errors import InfrastructureError
from tilewright.evaluator.processes import device_lease, prefork
from tilewright.evaluator.processes.device_lease import DeviceLease
from tilewright.evaluator.processes.prefork import lease_folder


@pytest.fixture
def name() -> Iterator[str]:
    made = f"test-{os.getpid()}-{secrets.token_hex(4)}"
    yield made
    for path in lease_folder().glob(f"{made}*"):
        path.unlink()


def test_shared_leases_are_held_together(name):
    with DeviceLease(name, shared=True) as first, DeviceLease(name, shared=True) as second:
        assert first.try_take()
        assert second.try_take()
        with DeviceLease(name, shared=False) as alone:
            assert not alone.try_take()
    with DeviceLease(name, shared=False) as alone:
        assert alone.try_take()
        for shared in (True, False):
            with DeviceLease(name, shared=shared) as other:
                assert not other.try_take()


def test_the_holder_is_known_while_it_holds_the_device_alone(name):
    with DeviceLease(name, shared=False) as waiting:
        with DeviceLease(name, shared=False) as alone:
            assert waiting.holder() is None
            assert alone.try_take()
            assert waiting.holder() == os.getpid()
        assert waiting.holder() is None
        with DeviceLease(name, shared=True) as shared:
            assert shared.try_take()
            assert waiting.holder() is None
    # A process that was killed left its number.
    (lease_folder() / f"{name}.lock").write_text("999999999")
    with DeviceLease(name, shared=False) as waiting:
        assert waiting.holder() is None


def test_shared_leases_pass_a_waiter_that_is_patient(name):
    with DeviceLease(name, shared=True) as first, DeviceLease(name, shared=False) as alone:
        assert first.try_take()
        assert not alone.try_take()
        with DeviceLease(name, shared=True) as second:
            assert second.try_take()


def test_after_a_while_no_lease_begins_before_the_waiters(name, monkeypatch):
    monkeypatch.setattr(device_lease, "PATIENCE_S", 0.0)
    with DeviceLease(name, shared=False) as alone, DeviceLease(name, shared=True) as later:
        with DeviceLease(name, shared=True) as first:
            assert first.try_take()
            assert not alone.try_take()
            assert not later.try_take()
            with DeviceLease(name, shared=False) as second:
                assert not second.try_take()
        assert not later.try_take()
        assert alone.try_take()
        assert not later.try_take()
    with DeviceLease(name, shared=True) as later:
        assert later.try_take()


def test_a_waiter_that_leaves_gives_its_place_back(name, monkeypatch):
    monkeypatch.setattr(device_lease, "PATIENCE_S", 0.0)
    with DeviceLease(name, shared=True) as first, DeviceLease(name, shared=True) as second:
        assert first.try_take()
        with DeviceLease(name, shared=False) as alone:
            assert not alone.try_take()
            assert not second.try_take()
        assert second.try_take()


@pytest.fixture
def leases(tmp_path, monkeypatch):
    """Leases lie in a folder of this test."""
    monkeypatch.setattr(prefork, "LEASES", tmp_path)
    return tmp_path / f"tilewright-leases-{os.getuid()}"


def test_a_folder_that_others_can_write_into_is_refused(leases):
    with prefork.open_lock("cpu"):
        pass
    leases.chmod(0o777)
    with pytest.raises(InfrastructureError, match="this user alone"):
        prefork.open_lock("cpu")


def test_a_link_is_followed_neither_as_the_folder_nor_as_a_lock(leases, tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("kept")
    leases.mkdir(mode=0o700)
    (leases / "cpu.lock").symlink_to(precious)
    with pytest.raises(InfrastructureError, match="cannot make"):
        prefork.open_lock("cpu")
    (leases / "cpu.lock").unlink()
    leases.rmdir()
    (tmp_path / "own").mkdir()
    leases.symlink_to(tmp_path / "own")
    with pytest.raises(InfrastructureError, match="no folder"):
        prefork.open_lock("cpu")
    assert precious.read_text() == "kept"


def test_a_full_disk_costs_only_the_note_of_the_holder(name):
    """A process that may write no byte to a file takes the lease, and gives it back."""
    script = (
        "import resource, sys\n"
        "from tilewright.evaluator.processes.device_lease import DeviceLease\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "with DeviceLease(sys.argv[1], shared=False) as lease:\n"
        "    assert lease.try_take()\n"
        "    assert lease.holder() is None\n"
    )
    done = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
