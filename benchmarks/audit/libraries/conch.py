"""conch-triton-kernels: Triton kernels for inference and vision."""

from __future__ import annotations

from benchmarks.audit.libraries.base import Call, Claim, Library, NotJudged

README = "description of conch-triton-kernels 1.3 in the package index, on one H100"
BEV_POOL = """import torch
from conch.ops.vision.bev_pool import bev_pool, bev_pool_backward


class Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, cells, starts, lengths):
        ctx.save_for_backward(cells, starts, lengths)
        return bev_pool(features, cells, starts, lengths, 1, 1, 128, 128)

    @staticmethod
    def backward(ctx, grad):
        return bev_pool_backward(grad.contiguous(), *ctx.saved_tensors), None, None, None
"""

CALLS = (
    Call(
        "swiglu_packed", "from conch.ops.activation.silu_and_mul import silu_and_mul",
        "return silu_and_mul(x)",
    ),
    Call(
        "geglu_packed", "from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul",
        "return gelu_tanh_and_mul(x)",
    ),
    Call(
        "rms_norm", "from conch.ops.normalization.rms_norm import rms_norm",
        "return rms_norm(x, w, 1e-6)",
    ),
    Call(
        "gemma_rms_norm", "from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm",
        "return gemma_rms_norm(x, w, 1e-6, r)",
    ),
    Call(
        "rope",
        "import torch\nfrom conch.ops.embedding.rotary_embedding import rotary_embedding",
        "places, table = torch.arange(q.shape[1], device=q.device), torch.cat((cos, sin), -1)\n"
        "    # Both are views, into which the operator writes.\n"
        "    rotary_embedding(places, q[0].flatten(1), k[0].flatten(1), q.shape[-1], table)\n"
        "    return q, k",
        note="It writes into its inputs, which the problem allows all libraries. The candidate "
        "joins the tables of 512 KB and counts the places, because the operator takes them so.",
    ),
    Call(
        "paged_prefill", "from conch.ops.attention.varlen_attention import varlen_attention",
        "return varlen_attention(\n"
        "        q, k, v, starts, 1024, lengths, 1024, table, causal=True, scale=128**-0.5\n"
        "    )",
    ),
    Call(
        "paged_decode", "from conch.ops.attention.paged_attention import paged_attention",
        "return paged_attention(q, k, v, table, lengths, scale=128**-0.5)",
    ),
    Call(
        "int4_linear", "from conch.ops.quantization.gemm import mixed_precision_gemm",
        "return mixed_precision_gemm(x, packed, scale, None, 4, 8, 128)",
    ),
    Call(
        "int8_linear", "from conch.ops.quantization.gemm import scaled_gemm",
        "return scaled_gemm(a, b, scale_a, scale_b, scale_a.dtype)",
    ),
    Call(
        "fp8_quantize", "from conch.ops.quantization.fp8 import scaled_fp8_quant",
        "return scaled_fp8_quant(x, scale)[0]",
    ),
    Call(
        "nf4_dequantize",
        "import torch\n"
        "from conch.ops.quantization.bitsandbytes.functional import dequantize_blockwise",
        "out = torch.empty(64 * absmax.numel(), device=x.device, dtype=absmax.dtype)\n"
        '    return dequantize_blockwise(x, None, absmax, None, out, 64, "nf4")',
    ),
    Call(
        "bev_pool", BEV_POOL.rstrip(), "return Pool.apply(features, cells, starts, lengths)",
        backward=True,
        note="A class of the candidate joins the two functions of the library.",
    ),
)  # fmt: skip

LIBRARY = Library(
    name="conch-triton-kernels",
    version="1.3",
    module="conch",
    calls=CALLS,
    not_judged=(
        NotJudged("fused_add_rms_norm", "It writes its results into its inputs."),
        NotJudged("copy_blocks, reshape_and_cache", "They change the cache that they get."),
        NotJudged("nms, generate_voxels", "The size of the output depends on values."),
        NotJudged("scaled_int8_quant, quantize_4bit", "A tie of rounding decides an integer."),
        NotJudged("conch_cuda_ext", "It is a compiled extension."),
    ),
    claims=(
        Claim(
            "RMS Norm (Llama-style): CUDA 0.042 ms, Triton 0.017 ms, Triton Speedup 2.47", README
        ),
        Claim("SiLU and Mul: CUDA 0.710 ms, Triton 0.046 ms, Triton Speedup 15.43", README),
        Claim("Varlen Attention: CUDA 0.360 ms, Triton 0.735 ms, Triton Speedup 0.49", README),
    ),
    needs=("numpy",),
)
