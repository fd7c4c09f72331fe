"""flash-linear-attention: linear attention and layers; its kernels are those of fla-core."""

from __future__ import annotations

from benchmarks.audit.libraries.base import Call, Claim, Library, NotJudged

NORM = "from fla.modules.norm.layernorm import "
README = "description of fla-core 0.6.0 in the package index"

CALLS = (
    Call("rms_norm", NORM + "rms_norm", "return rms_norm(x, w, None, eps=1e-6)", backward=True),
    Call("layer_norm", NORM + "layer_norm", "return layer_norm(x, w, b, eps=1e-5)"),
    Call(
        "fused_add_rms_norm", NORM + "rms_norm",
        "return rms_norm(x, w, None, residual=r, eps=1e-6, prenorm=True)",
    ),
    Call(
        "rms_norm_gated", "from fla.modules.norm.fused_norm_gate import rms_norm_gated",
        "return rms_norm_gated(x, g, w, None, eps=1e-6)", backward=True,
    ),
    Call("l2norm", "from fla.modules.norm.l2norm import l2norm", "return l2norm(x, 1e-6)"),
    Call(
        "swiglu", "from fla.modules.activations.ops import swiglu", "return swiglu(a, b)",
        backward=True,
    ),
    Call(
        "cross_entropy",
        "from fla.modules.fused_cross_entropy.ops import cross_entropy_loss",
        "return cross_entropy_loss(x, target)[0].mean().to(x.dtype)", backward=True,
        note="The operator returns the loss of each row in fp32; torch averages it.",
    ),
    Call(
        "fused_linear_cross_entropy",
        "from fla.modules.fused_linear_cross_entropy.ops import fused_linear_cross_entropy_loss",
        "return fused_linear_cross_entropy_loss(x, target, w).to(x.dtype)", backward=True,
        note="The operator returns the loss in fp32.",
    ),
    Call(
        "rope", "from fla.modules.rotary.ops import rotary_embedding",
        "return rotary_embedding(q, cos, sin), rotary_embedding(k, cos, sin)",
    ),
    Call(
        "attention", "from fla.ops.attn.parallel import parallel_attn",
        "return parallel_attn(q, k, v)", backward=True,
    ),
    Call(
        "linear_attention", "from fla.ops.linear_attn.chunk import chunk_linear_attn",
        "return chunk_linear_attn(q, k, v, normalize=False)[0]",
        note="The reference computes all pairs of places, as plain torch does.",
    ),
    Call(
        "retention", "from fla.ops.retention.chunk import chunk_retention",
        "return chunk_retention(q, k, v)[0]",
        note="The reference computes all pairs of places, as plain torch does.",
    ),
    Call(
        "causal_conv1d", "from fla.modules.causal_conv1d.ops import causal_conv1d",
        'return causal_conv1d(x, w, activation="silu")[0]', backward=True,
    ),
    Call(
        "token_shift", "from fla.modules.token_shift import token_shift", "return token_shift(x)",
    ),
    Call(
        "mean_pooling", "from fla.ops.utils.pooling import mean_pooling",
        "return mean_pooling(x, 64)",
    ),
)  # fmt: skip

LIBRARY = Library(
    name="fla-core",
    version="0.6.0",
    module="fla",
    calls=CALLS,
    not_judged=(
        NotJudged("cp (context parallel)", "It needs a process group."),
        NotJudged("causal_conv1d with the backend `cuda`", "It needs a compiled extension."),
        NotJudged("causal_conv1d_update", "It changes the state that it gets."),
        NotJudged(
            "gla, delta_rule, rwkv7 and others with a recurrence",
            "Plain torch needs a loop over 2048 places, so that a ratio would tell nothing.",
        ),
    ),
    claims=(
        Claim(
            "Flash Linear Attention brings together hardware-efficient building blocks, "
            "training-ready layers, and components for modern sequence models [...]",
            README,
        ),
    ),
    needs=("einops", "packaging"),
)
