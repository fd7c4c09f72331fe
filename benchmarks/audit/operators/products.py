"""Matrix products, and quantised weights."""

from __future__ import annotations

from benchmarks.audit.operators.base import PATCHES, TOKENS, Case, Operator

NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""The values of the data type NF4 (Dettmers et al., QLoRA, 2023, appendix E)."""
LINEAR: tuple[Case, ...] = (
    {"name": "llama3_8b", "m": TOKENS, "k": 4096, "n": 4096},
    {"name": "vit_small", "m": PATCHES, "k": 384, "n": 1536},
)

OPERATORS = (
    Operator(
        "linear", "x, w, b",
        'm, k, n = case["m"], case["k"], case["n"]\n'
        "    w = normal(generator, k, n) * k**-0.5\n"
        "    return normal(generator, m, k), w, normal(generator, n)",
        "return torch.addmm(b, x, w)", LINEAR,
    ),
    Operator(
        "bmm", "a, b",
        'heads, tokens, size = case["heads"], case["tokens"], case["size"]\n'
        "    return normal(generator, heads, tokens, size), normal(generator, heads, size, tokens)",
        "return torch.bmm(a, b)",
        (
            {"name": "llama3_8b", "heads": 32, "tokens": 1024, "size": 128},
            {"name": "vit_small", "heads": 64 * 6, "tokens": 197, "size": 64},
        ),
    ),
    Operator(
        "int4_linear", "x, packed, scale",
        'm, k, n = case["m"], case["k"], case["n"]\n'
        "    packed = torch.randint(-(2**31), 2**31, (k // 8, n), generator=generator)\n"
        "    scale = torch.rand(k // 128, n, generator=generator, dtype=DTYPE) * k**-0.5\n"
        "    return normal(generator, m, k), packed.int(), scale",
        "shifts = torch.arange(0, 32, 4, device=x.device, dtype=torch.int32)[None, :, None]\n"
        "    w = ((packed[:, None] >> shifts & 15) - 8).flatten(0, 1).to(x.dtype)\n"
        "    return x @ (w * scale.repeat_interleave(128, 0))",
        ({"name": "llama3_8b", "m": 256, "k": 4096, "n": 4096},),
    ),
    Operator(
        "int8_linear", "a, b, scale_a, scale_b",
        'm, k, n = case["m"], case["k"], case["n"]\n'
        "    a = torch.randint(-127, 128, (m, k), generator=generator).to(torch.int8)\n"
        "    b = torch.randint(-127, 128, (k, n), generator=generator).to(torch.int8)\n"
        "    scale_a = torch.rand(m, 1, generator=generator, dtype=DTYPE) * 0.01\n"
        "    return a, b, scale_a, torch.rand(n, 1, generator=generator, dtype=DTYPE) * 0.01",
        "return a.to(scale_a.dtype) @ b.to(scale_a.dtype) * scale_a * scale_b.T",
        ({"name": "llama3_8b", "m": 512, "k": 4096, "n": 4096},),
    ),
    Operator(
        "fp8_quantize", "x, scale",
        'scale = torch.rand(1, generator=generator) + 0.5\n'
        '    return normal(generator, case["rows"], case["cols"]), scale',
        "return (x / scale).clamp(-448, 448).to(torch.float8_e4m3fn)",
        ({"name": "llama3_8b", "rows": TOKENS, "cols": 4096},),
    ),
    Operator(
        "nf4_dequantize", "x, absmax",
        'blocks = case["rows"] * case["cols"] // 64\n'
        "    x = torch.randint(256, (blocks * 32,), generator=generator).to(torch.uint8)\n"
        "    return x, torch.rand(blocks, generator=generator, dtype=DTYPE) + 0.5",
        f"code = torch.tensor({list(NF4)}, device=x.device, dtype=absmax.dtype)\n"
        "    index = torch.stack((x >> 4, x & 15), -1).flatten().long()\n"
        "    return (code[index].view(-1, 64) * absmax[:, None]).flatten()",
        ({"name": "llama3_8b", "rows": 4096, "cols": 4096},),
    ),
)  # fmt: skip
