"""Operators of vision models."""

from __future__ import annotations

from benchmarks.audit.operators.base import Operator

OPERATORS = (
    Operator(
        "group_norm", "x, w, b",
        'images, channels = case["images"], case["channels"]\n'
        '    x = normal(generator, images, channels, case["pixels"])\n'
        "    return x, normal(generator, channels), normal(generator, channels)",
        "return F.group_norm(x, 32, w, b, 1e-5)",
        ({"name": "resnet", "images": 32, "channels": 256, "pixels": 28 * 28},), ("x", "w", "b"),
    ),
    Operator(
        "conv2d", "x, w, b",
        'images, channels, size = case["images"], case["channels"], case["size"]\n'
        "    w = normal(generator, channels, channels, 3, 3) / 24\n"
        "    x = normal(generator, images, channels, size, size)\n"
        "    return x, w, normal(generator, channels)",
        "return F.conv2d(x, w, b, padding=1)",
        ({"name": "resnet", "images": 32, "channels": 64, "size": 56},),
    ),
    Operator(
        "bev_pool", "features, cells, starts, lengths",
        # Each interval of eight points lies in a cell of its own.
        'intervals, side = case["intervals"], case["side"]\n'
        "    cell = torch.randperm(side * side, generator=generator)[:intervals]\n"
        "    cell = cell.repeat_interleave(8)\n"
        "    zero = torch.zeros_like(cell)\n"
        "    cells = torch.stack((cell // side, cell % side, zero, zero), -1).int()\n"
        "    starts = torch.arange(intervals, dtype=torch.int32) * 8\n"
        "    lengths = torch.full((intervals,), 8, dtype=torch.int32)\n"
        "    return normal(generator, 8 * intervals, 80), cells, starts, lengths",
        "index = (cells[:, 0] * 128 + cells[:, 1]).long()[starts.long()]\n"
        "    grid = torch.zeros(128 * 128, 80, device=features.device, dtype=features.dtype)\n"
        "    summed = features.view(-1, 8, 80).sum(1)\n"
        "    return grid.index_copy(0, index, summed).view(1, 1, 128, 128, 80)",
        ({"name": "bevfusion", "intervals": 8192, "side": 128},), ("features",),
    ),
)  # fmt: skip
