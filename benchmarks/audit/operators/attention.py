"""Attention, linear attention, and rotary positions."""

from __future__ import annotations

from benchmarks.audit.operators.base import TOKENS, Case, Operator

SEQUENCE: tuple[Case, ...] = ({"name": "llama3_8b", "tokens": TOKENS},)
QKV = (
    'tokens = case["tokens"]\n'
    "    q = normal(generator, 1, tokens, 32, 128)\n"
    "    k = normal(generator, 1, tokens, 8, 128)\n"
    "    return q, k, normal(generator, 1, tokens, 8, 128)"
)
HEADS = (
    'tokens = case["tokens"]\n'
    "    q = normal(generator, 1, tokens, 32, 128)\n"
    "    k = normal(generator, 1, tokens, 32, 128)\n"
    "    return q, k, normal(generator, 1, tokens, 32, 128)"
)
ATTEND = "F.scaled_dot_product_attention({}, is_causal={}, enable_gqa=True)"
SWAP = "q, k, v = (each.transpose(1, 2) for each in (q, k, v))\n    "
SCORES = "scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5\n    "
DECAY = (
    # In double precision, since the rates of the last heads lie close to 1.
    "place = torch.arange(q.shape[-2], device=q.device, dtype=torch.float64)\n"
    "    head = torch.arange(q.shape[1], device=q.device, dtype=torch.float64)\n"
    "    rate = torch.log1p(-(2.0 ** (-5 - head)))[:, None, None]\n"
    "    decay = torch.exp((place[:, None] - place).clamp(min=0) * rate).tril().to(q.dtype)\n    "
)
PAGED = (
    'batch, tokens = case["batch"], case["tokens"]\n'
    "    blocks = batch * tokens // 16\n"
    "    q = normal(generator, batch * case['queries'], 32, 128)\n"
    "    k = normal(generator, blocks, 16, 8, 128)\n"
    "    v = normal(generator, blocks, 16, 8, 128)\n"
    "    table = torch.randperm(blocks, generator=generator).view(batch, -1).int()\n    "
)
GATHERED = "k, v = (each[table.long()].flatten(1, 2).transpose(1, 2) for each in (k, v))\n    "

OPERATORS = (
    Operator(
        "attention", "q, k, v", QKV,
        SWAP + f"return {ATTEND.format('q, k, v', True)}.transpose(1, 2)",
        SEQUENCE, ("q", "k", "v"),
    ),
    Operator(
        "paged_prefill", "q, k, v, table, starts, lengths",
        PAGED + "starts = torch.arange(batch + 1, dtype=torch.int32) * tokens\n"
        "    return q, k, v, table, starts, torch.full((batch,), tokens, dtype=torch.int32)",
        GATHERED + "q = q.unflatten(0, (len(lengths), -1)).transpose(1, 2)\n"
        f"    return {ATTEND.format('q, k, v', True)}.transpose(1, 2).flatten(0, 1)",
        ({"name": "llama3_8b", "batch": 2, "tokens": 1024, "queries": 1024},),
    ),
    Operator(
        "paged_decode", "q, k, v, table, lengths",
        PAGED + "return q, k, v, table, torch.full((batch,), tokens, dtype=torch.int32)",
        GATHERED + f"return {ATTEND.format('q[:, :, None], k, v', False)}[:, :, 0]",
        ({"name": "llama3_8b", "batch": 16, "tokens": 1024, "queries": 1},),
    ),
    Operator(
        "linear_attention", "q, k, v", HEADS,
        SWAP + SCORES + "return (scores.tril() @ v).transpose(1, 2)", SEQUENCE,
    ),
    Operator(
        "retention", "q, k, v", HEADS,
        SWAP + SCORES + DECAY + "return (scores * decay @ v).transpose(1, 2)", SEQUENCE,
    ),
    Operator(
        "rope", "q, k, cos, sin",
        'tokens = case["tokens"]\n'
        "    angle = torch.rand(tokens, 64, generator=generator) * 6.28\n"
        "    q, k = normal(generator, 1, tokens, 32, 128), normal(generator, 1, tokens, 8, 128)\n"
        "    return q, k, angle.cos().to(DTYPE), angle.sin().to(DTYPE)",
        "cos, sin = cos[:, None], sin[:, None]\n\n"
        "    def rotated(x):\n"
        "        a, b = x.chunk(2, -1)\n"
        "        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)\n\n"
        "    return rotated(q), rotated(k)",
        # Models rotate what a product has just made. Some libraries have no other form.
        SEQUENCE, ("q", "k"), in_place=("q", "k"),
    ),
    Operator(
        "causal_conv1d", "x, w",
        "x = normal(generator, 1, case['tokens'], 4096)\n    return x, normal(generator, 4096, 4)",
        "y = F.conv1d(x.transpose(1, 2), w[:, None], padding=3, groups=w.shape[0])\n"
        "    return F.silu(y[..., : x.shape[1]].transpose(1, 2))",
        SEQUENCE, ("x", "w"),
    ),
)  # fmt: skip
