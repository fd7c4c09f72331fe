"""The theoretical occupancy of a kernel, against values of NVIDIA's occupancy calculator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.records import KernelShape
from tilewright.scoring.occupancy import LIMITS, occupancy


def shape(**changes):
    fields = {"name": "rows", "blocks": 1, "threads": 256, "registers": 32, "shared_bytes": 0}
    return KernelShape(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "arch", "share", "limited_by"),
    [
        ({}, "sm_90", 1.0, "threads"),
        ({"registers": 64}, "sm_90", 0.5, "registers"),
        ({"registers": 255}, "sm_90", 0.125, "registers"),
        ({"threads": 32}, "sm_90", 0.5, "blocks"),
        ({"threads": 1024, "registers": 33}, "sm_90", 0.5, "registers"),
        ({"shared_bytes": 100 * 1024}, "sm_90", 0.25, "shared memory"),
        ({"shared_bytes": 48 * 1024}, "sm_86", 1 / 3, "shared memory"),
        ({"threads": 1024, "registers": 32}, "sm_86", 2 / 3, "threads"),
        ({"registers": None, "shared_bytes": None}, "sm_80", 1.0, "threads"),
    ],
)
def test_the_scarcest_resource_limits_the_resident_warps(changes, arch, share, limited_by):
    found = occupancy(shape(**changes), arch)
    assert found is not None
    assert found.share == pytest.approx(share)
    assert found.limited_by == limited_by


def test_unknown_architectures_and_blocks_that_fit_nowhere_have_none():
    assert occupancy(shape(), "sm_75") is None
    assert occupancy(shape(threads=1024, registers=255), "sm_90") is None


@given(
    st.sampled_from(sorted(LIMITS)),
    st.integers(1, 1024),
    st.integers(1, 255),
    st.integers(0, 99 * 1024),
)
def test_more_of_a_resource_never_raises_the_occupancy(arch, threads, registers, shared):
    def share(**more):
        fields = {"threads": threads, "registers": registers, "shared_bytes": shared, **more}
        found = occupancy(shape(**fields), arch)
        return found.share if found else 0.0

    assert 0 <= share() <= 1
    assert share(registers=registers + 1) <= share()
    assert share(shared_bytes=shared + 1) <= share()
