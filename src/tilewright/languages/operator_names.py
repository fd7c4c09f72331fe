"""Names of torch, Triton and the standard library, and the static feature that each shows."""

from __future__ import annotations

TORCH_NAMESPACES = (
    *("torch.nn.functional.", "torch.ops.aten.", "torch.linalg.", "torch.special.", "torch.fft."),
    *("torch.sparse.", "torch.Tensor.", "torch._C._nn.", "torch._C._VariableFunctions.", "torch."),
)
"""Where torch keeps operators, the longest prefix first."""


def name_set(text: str) -> frozenset[str]:
    """Return the names in a text, which spaces and line ends separate."""
    return frozenset(text.split())


COMPUTE_OPS = name_set(
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

METHOD_OPS = COMPUTE_OPS - name_set(
    "add all any diff dist fold gather index_select inner norm normalize round sort unfold"
)
"""Operators that also count as a method of an unknown object; common names are left out."""

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
"""First parts of the names of torch.nn modules that compute."""

JIT_DECORATORS = name_set(
    """
    triton.JITFunction triton.jit triton.runtime.jit triton.runtime.jit.jit
    triton.experimental.gluon.jit
    """
)
"""Decorators that make a function a kernel; `autotune` and `heuristics` wrap one of these."""

WATCHED_MODULES = name_set(
    "builtins ctypes gc inspect math numpy os sys threading time torch triton"
)
"""Assigning to an attribute of one of these is a patch: others would see the change."""

_EXACT_NAMES = {
    "introspection": "sys._getframe sys._current_frames sys.modules sys.settrace sys.setprofile",
    "concurrency": "os.fork os.forkpty os.system os.popen os.kill",
    "compiled": """
        torch.compile torch.cuda.CUDAGraph torch.cuda.graph torch.cuda.make_graphed_callables
    """,
    "streams": """
        torch.cuda.Stream torch.cuda.stream torch.cuda.set_stream torch.cuda.ExternalStream
    """,
    "global_flags": """
        torch.set_default_dtype torch.set_default_device torch.set_default_tensor_type
        torch.set_float32_matmul_precision torch.set_flush_denormal torch.set_grad_enabled
        torch.set_num_threads torch.set_num_interop_threads torch.set_rng_state
        torch.set_warn_always torch.manual_seed torch.seed torch.random.manual_seed
        torch.cuda.manual_seed torch.cuda.manual_seed_all torch.cuda.set_device
        torch.cuda.set_rng_state torch.use_deterministic_algorithms
        torch.autograd.set_detect_anomaly random.seed numpy.random.seed os.putenv os.environ.update
        os.environ.setdefault
    """,
    "decoding": "bytes.fromhex bytearray.fromhex",
    "file_access": """
        open io.open os.open os.listdir os.scandir os.walk os.readlink pathlib.Path torch.load
        numpy.load
    """,
    "dynamic_code": """
        exec eval compile __import__ importlib.import_module types.FunctionType types.CodeType
    """,
    "patches": "torch.library.Library torch.library.impl",
    "fallbacks": "contextlib.suppress",
}
_NAME_PREFIXES = {
    "introspection": "inspect. gc. traceback.",
    "concurrency": """
        threading. _thread. multiprocessing. torch.multiprocessing. concurrent.futures. subprocess.
        asyncio. os.exec os.spawn os.posix_spawn
    """,
    "native_access": "ctypes. cffi. mmap.",
    "network": "socket. urllib. http. requests. torch.hub.",
    "decoding": "base64. binascii. codecs. marshal. pickle. zlib.",
    "compiled": "torch.jit. torch._dynamo. torch._inductor.",
    "file_access": "glob. shutil.",
    "patches": "unittest.mock.",
}

EXACT_NAMES = {name: field for field, names in _EXACT_NAMES.items() for name in names.split()}
"""Dotted name or builtin: the field of `StaticFeatures` that records its use."""

NAME_PREFIXES = tuple(
    (prefix, field) for field, names in _NAME_PREFIXES.items() for prefix in names.split()
)
"""First part of a dotted name, and the field that records its use; `EXACT_NAMES` goes before."""
