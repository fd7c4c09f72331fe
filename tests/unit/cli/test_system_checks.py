"""`doctor` reports the clocks, modes and counters of a GPU."""

from __future__ import annotations

from tilewright.cli.system_checks import settings_items
from tilewright.evaluator.devices.nvml import Settings


def test_unlocked_clocks_and_modes_that_make_times_vary_are_named():
    items = {item.name: item for item in settings_items(Settings(False, True, None, 1980))}
    assert not any(item.ok for item in items.values())
    assert items["GPU clocks"].detail == "not locked, up to 1980 MHz"
    assert items["GPU persistence mode"].detail == "off"
    assert items["GPU without MIG"].detail == "on"
    assert all(item.get for item in items.values())


def test_a_gpu_that_is_set_up_for_timing_has_no_fault():
    items = list(settings_items(Settings(True, False, 1500, 1980)))
    assert all(item.ok for item in items)
    assert items[0].detail == "locked to 1500 MHz"


def test_what_the_driver_does_not_report_is_unknown():
    items = list(settings_items(Settings()))
    assert [item.detail for item in items] == ["not locked, unknown", "unknown", "unknown"]
