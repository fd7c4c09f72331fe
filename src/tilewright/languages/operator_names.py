"""Tables for `source`: names of torch, Triton and the standard library, and what each shows."""

from __future__ import annotations

__all__ = [
    "COMPUTE_MODULES",
    "COMPUTE_OPS",
    "EXACT_NAMES",
    "JIT_DECORATORS",
    "METHOD_OPS",
    "NAME_PREFIXES",
    "TORCH_NAMESPACES",
    "WATCHED_MODULES",
]

TORCH_NAMESPACES = (
    "torch.nn.functional.",
    "torch.ops.aten.",
    "torch.linalg.",
    "torch.special.",
    "torch.fft.",
    "torch.sparse.",
    "torch.Tensor.",
    "torch._C._nn.",
    "torch._C._VariableFunctions.",
    "torch.",
)
"""Where torch keeps operators, the longest prefix first."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMPUTE_OPS = _words(
    """
    abs acos acosh add addbmm addcdiv addcmul addmm addmv adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d all amax amin
    any argmax argmin asin asinh atan atan2 atanh avg_pool1d avg_pool2d avg_pool3d baddbmm
    batch_norm bilinear binary_cross_entropy binary_cross_entropy_with_logits bincount bmm
    cdist ceil celu chain_matmul clamp cholesky conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d convolution cos cosh cosine_embedding_loss
    cosine_similarity cross cross_entropy cummax cummin cumprod cumsum det diff dist div dot
    dropout eig eigh einsum elu embedding embedding_bag erf erfc exp exp2 expm1 fft flash_attn
    floor fmod frac fold gelu gather glu grid_sample group_norm gru_cell gumbel_softmax
    hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss histc huber_loss ifft index_add
    index_select inner instance_norm interpolate inv irfft kl_div kron kthvalue l1_loss layer_norm
    leaky_relu lerp linear local_response_norm log log10 log1p log2 log_softmax logaddexp
    logcumsumexp logsigmoid logsumexp lp_pool1d lp_pool2d lstm_cell lu margin_ranking_loss
    masked_fill masked_select matmul matrix_exp matrix_norm matrix_power max max_pool1d max_pool2d
    max_pool3d max_unpool2d maximum mean median min minimum mish mm mse_loss mul
    multi_head_attention_forward multi_margin_loss multi_dot multinomial mv native_layer_norm
    neg nll_loss norm normalize outer pairwise_distance pdist pinv pixel_shuffle poisson_nll_loss
    pow prelu prod qr quantile reciprocal relu relu6 remainder rfft rms_norm round rrelu rsqrt
    rsub scaled_dot_product_attention scatter scatter_add scatter_reduce searchsorted selu sigmoid
    sign silu sin sinh slogdet smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink
    softsign solve sort sqrt square std std_mean sub sum svd tan tanh tanhshrink tensordot
    threshold topk trapz triangular_solve tril triplet_margin_loss triu unfold upsample var
    var_mean vdot vecdot vector_norm where xlogy
    """
)
"""Operators of torch that compute values; those that make, move or view tensors are not here."""

METHOD_OPS = COMPUTE_OPS - _words(
    "add all any diff dist fold gather index_select inner norm normalize round sort unfold"
)
"""Operators that count also as a method of something unknown; too common elsewhere are left out."""

COMPUTE_MODULES = (
    "Linear", "Bilinear", "Conv", "LazyConv", "LazyLinear", "BatchNorm", "LayerNorm", "GroupNorm",
    "InstanceNorm", "RMSNorm", "LocalResponseNorm", "MaxPool", "AvgPool", "AdaptiveAvgPool",
    "AdaptiveMaxPool", "LPPool", "FractionalMaxPool", "ReLU", "GELU", "SiLU", "Sigmoid", "Tanh",
    "Softmax", "LogSoftmax", "Softplus", "Softsign", "Softmin", "ELU", "SELU", "CELU", "GLU",
    "Hardtanh", "Hardswish", "Hardsigmoid", "LeakyReLU", "PReLU", "RReLU", "Mish", "LogSigmoid",
    "Dropout", "Embedding", "RNN", "LSTM", "GRU", "Transformer", "MultiheadAttention", "Upsample",
    "CrossEntropyLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "NLLLoss", "KLDivLoss",
    "BCELoss", "BCEWithLogitsLoss", "CosineSimilarity", "TripletMarginLoss", "HingeEmbeddingLoss",
    "Sequential",
)  # fmt: skip
"""What the names of torch.nn modules that compute start with."""

JIT_DECORATORS = frozenset(
    {
        "triton.JITFunction",
        "triton.jit",
        "triton.runtime.jit",
        "triton.runtime.jit.jit",
        "triton.experimental.gluon.jit",
    }
)
"""What makes a function a kernel. `autotune` and `heuristics` stand around one of these."""

WATCHED_MODULES = frozenset(
    {"builtins", "ctypes", "gc", "inspect", "math", "numpy", "os", "sys", "threading", "time"}
    | {"torch", "triton"}
)
"""Assigning to an attribute of one of these is a patch: others would see the change."""

EXACT_NAMES = {
    "sys._getframe": "introspection",
    "sys._current_frames": "introspection",
    "sys.modules": "introspection",
    "sys.settrace": "introspection",
    "sys.setprofile": "introspection",
    "os.fork": "concurrency",
    "os.forkpty": "concurrency",
    "os.system": "concurrency",
    "os.popen": "concurrency",
    "os.kill": "concurrency",
    "torch.compile": "compiled",
    "torch.cuda.CUDAGraph": "compiled",
    "torch.cuda.graph": "compiled",
    "torch.cuda.make_graphed_callables": "compiled",
    "torch.cuda.Stream": "streams",
    "torch.cuda.stream": "streams",
    "torch.cuda.set_stream": "streams",
    "torch.cuda.ExternalStream": "streams",
    "torch.set_default_dtype": "global_flags",
    "torch.set_default_device": "global_flags",
    "torch.set_default_tensor_type": "global_flags",
    "torch.set_float32_matmul_precision": "global_flags",
    "torch.set_flush_denormal": "global_flags",
    "torch.set_grad_enabled": "global_flags",
    "torch.set_num_threads": "global_flags",
    "torch.set_num_interop_threads": "global_flags",
    "torch.set_rng_state": "global_flags",
    "torch.set_warn_always": "global_flags",
    "torch.manual_seed": "global_flags",
    "torch.seed": "global_flags",
    "torch.random.manual_seed": "global_flags",
    "torch.cuda.manual_seed": "global_flags",
    "torch.cuda.manual_seed_all": "global_flags",
    "torch.cuda.set_device": "global_flags",
    "torch.cuda.set_rng_state": "global_flags",
    "torch.use_deterministic_algorithms": "global_flags",
    "torch.autograd.set_detect_anomaly": "global_flags",
    "random.seed": "global_flags",
    "numpy.random.seed": "global_flags",
    "os.putenv": "global_flags",
    "os.environ.update": "global_flags",
    "os.environ.setdefault": "global_flags",
    "bytes.fromhex": "decoding",
    "bytearray.fromhex": "decoding",
    "open": "file_access",
    "io.open": "file_access",
    "os.open": "file_access",
    "os.listdir": "file_access",
    "os.scandir": "file_access",
    "os.walk": "file_access",
    "os.readlink": "file_access",
    "pathlib.Path": "file_access",
    "torch.load": "file_access",
    "numpy.load": "file_access",
    "exec": "dynamic_code",
    "eval": "dynamic_code",
    "compile": "dynamic_code",
    "__import__": "dynamic_code",
    "importlib.import_module": "dynamic_code",
    "types.FunctionType": "dynamic_code",
    "types.CodeType": "dynamic_code",
    "torch.library.Library": "patches",
    "torch.library.impl": "patches",
    "contextlib.suppress": "fallbacks",
}
"""Dotted name or builtin, to the field of `StaticFeatures` that its use is recorded in."""

NAME_PREFIXES = (
    ("inspect.", "introspection"),
    ("gc.", "introspection"),
    ("traceback.", "introspection"),
    ("threading.", "concurrency"),
    ("_thread.", "concurrency"),
    ("multiprocessing.", "concurrency"),
    ("torch.multiprocessing.", "concurrency"),
    ("concurrent.futures.", "concurrency"),
    ("subprocess.", "concurrency"),
    ("asyncio.", "concurrency"),
    ("os.exec", "concurrency"),
    ("os.spawn", "concurrency"),
    ("os.posix_spawn", "concurrency"),
    ("ctypes.", "native_access"),
    ("cffi.", "native_access"),
    ("mmap.", "native_access"),
    ("socket.", "network"),
    ("urllib.", "network"),
    ("http.", "network"),
    ("requests.", "network"),
    ("torch.hub.", "network"),
    ("base64.", "decoding"),
    ("binascii.", "decoding"),
    ("codecs.", "decoding"),
    ("marshal.", "decoding"),
    ("pickle.", "decoding"),
    ("zlib.", "decoding"),
    ("torch.jit.", "compiled"),
    ("torch._dynamo.", "compiled"),
    ("torch._inductor.", "compiled"),
    ("glob.", "file_access"),
    ("shutil.", "file_access"),
    ("unittest.mock.", "patches"),
)
"""What dotted names start with, to the field; asked after `EXACT_NAMES`, in this order."""
