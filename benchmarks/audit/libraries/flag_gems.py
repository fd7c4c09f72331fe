"""flag-gems: a library of PyTorch's operators in Triton for many vendors.

`import flag_gems` replaces nothing in torch; the candidates call its functions by name.
"""

from __future__ import annotations

from benchmarks.audit.libraries.base import Call, Claim, Library, NotJudged

IMPORTS = "import flag_gems"


def _call(operator: str, expression: str, *, backward: bool = False) -> Call:
    return Call(operator, IMPORTS, f"return flag_gems.{expression}", backward)


CALLS = (
    _call("softmax", "softmax(x, -1)"),
    _call("log_softmax", "log_softmax(x, -1)"),
    _call("layer_norm", "layer_norm(x, x.shape[-1:], w, b, 1e-5)[0]"),
    _call("rms_norm", "rms_norm(x, x.shape[-1:], w, 1e-6)", backward=True),
    _call("swiglu", "silu_and_mul(a, b)", backward=True),
    _call("geglu", 'gelu_and_mul(a, b, "tanh")', backward=True),
    _call("gelu", "gelu(x)"),
    _call("cross_entropy", "cross_entropy_loss(x, target)", backward=True),
    _call("row_sum", "sum_dim(x, [-1])"),
    _call("row_max", "amax(x, [-1])"),
    _call("var_mean", "var_mean(x, [-1])"),
    _call("cumsum", "cumsum(x, -1)"),
    _call("bmm", "bmm(a, b)"),
    _call("linear", "addmm(b, x, w)"),
    _call("rope", "apply_rotary_pos_emb(q, k, cos, sin)"),
    _call("group_norm", "group_norm(x, w, b, x.shape[0], x.shape[1], x.shape[2], 32, 1e-5)[0]"),
    _call("conv2d", "conv2d(x, w, b, 1, 1)"),
)

SLOW = "Its tuner tries {} configurations, which takes longer than the time of a cell."

LIBRARY = Library(
    name="flag-gems",
    version="5.0.2",
    module="flag_gems",
    calls=CALLS,
    not_judged=(
        NotJudged("fused_add_rms_norm", "It writes its results into its inputs."),
        NotJudged("add_, mul_ and other operators with `_`", "They change their inputs."),
        NotJudged("scaled_dot_product_attention", SLOW.format("108")),
        NotJudged("mm", SLOW.format("up to 216")),
        NotJudged("normal, uniform, dropout", "Their random streams are not those of torch."),
        NotJudged("unique, nonzero, masked_select", "The size of the output depends on values."),
    ),
    claims=(
        Claim(
            "FlagGems is a high-performance, generic operator library implemented in Triton "
            "language. [...] For kernel developers, the Triton language offers readability, "
            "user-friendliness and performance comparable to CUDA.",
            "description of flag-gems 5.0.2 in the package index",
        ),
    ),
    needs=("packaging", "yaml", "sqlalchemy", "numpy"),
    # Otherwise it asks by starting nvidia-smi, which the sandbox does not show.
    before='import os\n\nos.environ["GEMS_VENDOR"] = "nvidia"\n',
)
