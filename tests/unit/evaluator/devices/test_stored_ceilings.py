"""Ceilings of several devices lie in one file; a damaged entry counts as not measured."""

from __future__ import annotations

import json

from tilewright.evaluator.devices.stored_ceilings import FILE, read_ceilings, write_ceilings
from tilewright.records import Ceilings

MEASURED = Ceilings(memory_bandwidth_bytes_per_s=4.4e12, flops_per_s={"fp16": 7e14})


def test_each_device_has_its_own_ceilings(tmp_path):
    other = MEASURED.model_copy(update={"memory_bandwidth_bytes_per_s": 1e12})
    write_ceilings(tmp_path, "one", MEASURED)
    write_ceilings(tmp_path, "two", other)
    assert read_ceilings(tmp_path, "one") == MEASURED
    assert read_ceilings(tmp_path, "two") == other
    assert read_ceilings(tmp_path, "three") is None


def test_a_missing_or_damaged_file_holds_none(tmp_path):
    assert read_ceilings(tmp_path, "one") is None
    for text in ("{", "[]", json.dumps({"one": 3}), json.dumps({"one": {"flops_per_s": {}}})):
        (tmp_path / FILE).write_text(text)
        assert read_ceilings(tmp_path, "one") is None
