"""Spaces of programs: a problem, knobs, and the source of each combination of their values."""

from __future__ import annotations

from tilewright.spaces import cpp_matmul, triton_gemm, triton_softmax
from tilewright.spaces.space import Space

SPACES: dict[str, Space] = {
    space.name: space for space in (cpp_matmul.SPACE, triton_gemm.SPACE, triton_softmax.SPACE)
}
"""The spaces by name."""
