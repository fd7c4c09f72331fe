"""Share of a float8 output that differs from the oracle, with honest and with missing work.

`python -m benchmarks.accuracy.float8_steps` prints the table of a note in docs/lab.
"""

from __future__ import annotations

import torch

ROWS, WIDTH = 256, 1024
FORMATS = (torch.float8_e4m3fn, torch.float8_e5m2)


def outputs(seed: int) -> dict[str, dict[str, torch.Tensor]]:
    """Return for each operation its exact result, and those of other ways to compute it."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(ROWS, WIDTH, generator=generator)
    w = torch.randn(WIDTH, WIDTH, generator=generator) / 32
    norm = x.double() * x.double().square().mean(-1, keepdim=True).rsqrt() * 4
    eighth = WIDTH * 7 // 8
    kept = (x.double()[:, :eighth].square().sum(-1, keepdim=True) / WIDTH).rsqrt()
    soft = x.double().softmax(-1) * 256
    product = x.double() @ w.double()
    return {
        "matmul": {
            "exact": product,
            "float32": (x @ w).double(),
            "bfloat16": (x.bfloat16() @ w.bfloat16()).double(),
            "bfloat16 at the end": product.bfloat16().double(),
            "an eighth dropped": x.double()[:, :eighth] @ w.double()[:eighth],
        },
        "rms norm": {
            "exact": norm,
            "float32": (x * x.square().mean(-1, keepdim=True).rsqrt() * 4).double(),
            "bfloat16": (
                x.bfloat16() * x.square().mean(-1, keepdim=True).rsqrt().bfloat16() * 4
            ).double(),
            "bfloat16 at the end": norm.bfloat16().double(),
            "an eighth dropped": x.double() * kept * 4,
        },
        "softmax": {
            "exact": soft,
            "float32": (x.softmax(-1) * 256).double(),
            "bfloat16": (x.bfloat16().softmax(-1) * 256).double(),
            "bfloat16 at the end": soft.bfloat16().double(),
            "an eighth dropped": soft
            * (x.double().exp().sum(-1, keepdim=True))
            / x.double()[:, :eighth].exp().sum(-1, keepdim=True),
        },
    }


def share(kind: torch.dtype, exact: torch.Tensor, other: torch.Tensor) -> float:
    """Return the share of elements that are rounded to another number of the format."""
    return float((exact.to(kind) != other.to(kind)).double().mean())


def main() -> None:
    """Print one row for each operation and format: the largest share of ten samples."""
    samples = [outputs(seed) for seed in range(10)]
    ways = list(samples[0]["matmul"])[1:]
    print("| operation | format |", " | ".join(ways), "|")
    for name in samples[0]:
        for kind in FORMATS:
            found = {
                way: [share(kind, each[name]["exact"], each[name][way]) for each in samples]
                for way in ways
            }
            # The smallest where work is missing: the limit must lie below it.
            shown = [min(v) if way == ways[-1] else max(v) for way, v in found.items()]
            label = str(kind).removeprefix("torch.float8_")
            print(f"| {name} | {label} |", " | ".join(f"{value:.4f}" for value in shown), "|")


if __name__ == "__main__":
    main()
