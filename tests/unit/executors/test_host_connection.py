"""When a warm host may be started, and what a client does without one."""

from __future__ import annotations

import pytest

from tilewright.config import load
from tilewright.executors import factory
from tilewright.executors.host_connection import HostConnector, may_start
from tilewright.executors.local import without_host


@pytest.mark.parametrize(
    ("wanted", "variables", "terminal", "starts"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"CI": "true"}, True, False),
        ("auto", {"CI": ""}, True, True),
        ("auto", {"SLURM_JOB_ID": "7"}, True, False),
        ("always", {}, False, True),
        ("always", {"CI": "1", "SLURM_JOB_ID": "7"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_a_host_starts_at_a_terminal_alone_unless_it_is_asked_for(
    wanted, variables, terminal, starts
):
    assert may_start(wanted, variables, terminal=terminal) is starts


@pytest.mark.parametrize(("wanted", "none"), [("never", True), ("auto", False)])
def test_the_setting_decides_whether_a_host_is_used(tmp_path, wanted, none):
    settings = load(overrides=[f"home={tmp_path}", f"host={wanted}"], environ={})
    (supervisor,) = factory.open_executor(settings).supervisors
    assert (supervisor._attach is without_host) is none


def test_supervisors_with_cores_of_their_own_use_no_host(tmp_path):
    executor = factory.LocalExecutor(
        tmp_path, cores=(0,), devices=("cpu",), attach=HostConnector(tmp_path, starts=True).attach
    )
    assert executor.supervisors[0]._attach is without_host
