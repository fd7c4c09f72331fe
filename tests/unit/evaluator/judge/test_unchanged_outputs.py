"""Parts of outputs that no input changes are counted, and values that agree by chance are not."""

from __future__ import annotations

import torch

from tilewright.evaluator.judge.unchanged_outputs import UnchangedOutputs

GENERATOR = torch.Generator().manual_seed(5)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def test_zeros_of_a_triangular_matrix_are_unchanged():
    seen = UnchangedOutputs()
    assert seen.unchanged_bytes([drawn(256, 256).tril()]) is None
    found = seen.unchanged_bytes([drawn(256, 256).tril()])
    assert found is not None
    assert 0.45 < found / (4 * 256 * 256) < 0.55


def test_zeros_of_a_rectifier_and_random_numbers_are_not():
    seen = UnchangedOutputs()
    for _ in range(3):
        found = seen.unchanged_bytes([drawn(256, 256).relu(), drawn(64).to(torch.bfloat16)])
    assert found == 0


def test_outputs_of_another_size_and_none_are_not_compared():
    seen = UnchangedOutputs()
    assert seen.unchanged_bytes([torch.zeros(64), None, torch.zeros(())]) is None
    assert seen.unchanged_bytes([torch.zeros(128), None, torch.zeros(())]) is None
    assert seen.unchanged_bytes([torch.zeros(128), None, torch.zeros(())]) == 512
    # As many places of both are compared.
    assert seen.unchanged_bytes([torch.zeros(1 << 18)]) is None
    assert seen.unchanged_bytes([torch.zeros(1 << 19)]) is None
