"""liger-kernel: Triton kernels for the training of language models."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.audit.libraries.base import Call, Claim, Library, NotJudged

README = "description of liger-kernel 0.8.5 in the package index"
CAST = (
    "The operator returns the loss in fp32, and torch's in the type of its inputs. In bf16 the "
    "candidate casts the loss, and the time of that kernel counts."
)


def _call(operator: str, function: str, arguments: str, *, backward: bool = False) -> Call:
    module, name = function.split(":")
    imports = f"from liger_kernel.ops.{module} import {name}"
    return Call(operator, imports, f"return {name}.apply({arguments})", backward)


def _loss(operator: str, function: str, arguments: str) -> Call:
    """Return the call of a loss that is fp32 for inputs of any type; torch's has their type."""
    call = _call(operator, function, arguments)
    return replace(call, body=f"{call.body}.to(x.dtype)", note=CAST)


CALLS = (
    _call("softmax", "softmax:LigerSoftmaxFunction", "x"),
    _call("layer_norm", "layer_norm:LigerLayerNormFunction", "x, w, b, 1e-5", backward=True),
    _call(
        "rms_norm", "rms_norm:LigerRMSNormFunction",
        'x, w, 1e-6, 0.0, "llama", False', backward=True,
    ),
    _call(
        "fused_add_rms_norm", "fused_add_rms_norm:LigerFusedAddRMSNormFunction",
        'x, r, w, 1e-6, 0.0, "llama", False', backward=True,
    ),
    _call("group_norm", "group_norm:LigerGroupNormFunction", "x, w, b, x.shape[1], 32, 1e-5"),
    _call("dyt", "dyt:LigerDyTFunction", "x, alpha, gamma, beta"),
    _call("swiglu", "swiglu:LigerSiLUMulFunction", "a, b", backward=True),
    _call("geglu", "geglu:LigerGELUMulFunction", "a, b", backward=True),
    _call("relu_squared", "relu_squared:LigerReLUSquaredFunction", "x"),
    _call("sparsemax", "sparsemax:LigerSparsemaxFunction", "x, -1"),
    Call(
        "rope", "import torch\nfrom liger_kernel.ops.rope import LigerRopeFunction",
        "cos, sin = (torch.cat((each, each), -1)[None] for each in (cos, sin))\n"
        "    q, k = q.transpose(1, 2), k.transpose(1, 2)\n"
        "    q, k = LigerRopeFunction.apply(q, k, cos, sin)\n"
        "    return q.transpose(1, 2), k.transpose(1, 2)",
        note="It writes into its inputs, which the problem allows all libraries. The candidate "
        "doubles the tables of 512 KB, because the operator takes them so.",
    ),
    Call(
        "cross_entropy",
        "from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction",
        "return LigerCrossEntropyFunction.apply(x, target, None)[0]", backward=True,
        note="With gradients it overwrites its logits; the problem allows that.",
    ),
    _loss("kl_div", "kl_div:LigerKLDivLossFunction", "x, y"),
    _call("jsd", "jsd:LigerJSDFunction", "x, y", backward=True),
    _loss("tvd", "tvd:LigerTVDLossFunction", "x, y"),
    Call(
        "fused_linear_cross_entropy",
        "from liger_kernel.ops.fused_linear_cross_entropy import (\n"
        "    LigerFusedLinearCrossEntropyFunction,\n)",
        "return LigerFusedLinearCrossEntropyFunction.apply(x, w, target)[0].to(x.dtype)",
        backward=True, note=CAST,
    ),
)  # fmt: skip

LIBRARY = Library(
    name="liger-kernel",
    version="0.8.5",
    module="liger_kernel",
    calls=CALLS,
    not_judged=(
        NotJudged("vocab_parallel_cross_entropy", "It needs a process group."),
        NotJudged("tiled_mlp", "It takes a module as argument and runs that module's own kernels."),
        NotJudged("cute and cutile variants", "They need a compiled extension or cuda-tile."),
        NotJudged("qwen2vl_mrope, llama4_rope", "Llama 3 8B and ViT-S have no such positions."),
    ),
    claims=(
        Claim(
            "It can effectively increase multi-GPU training throughput by 20% and reduces "
            "memory usage by 60%.",
            README,
        ),
        Claim(
            "Train LLaMA 3-8B ~20% faster with over 40% memory reduction on Alpaca dataset using "
            "4 A100s with FSDP",
            README,
        ),
    ),
    needs=("packaging",),
)
