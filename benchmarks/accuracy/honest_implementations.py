"""Named honest implementations of functions of one tensor, each with the reference it replaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

Tensor = torch.Tensor
Function = Callable[[Tensor], Tensor]
SHORT = (torch.bfloat16, torch.float16)
ALL = (*SHORT, torch.float32)
SINGLE = (torch.float32,)
PART = 32
"""Elements of a tile or of a part of a sum."""


@dataclass(frozen=True)
class Implementation:
    """An implementation that computes what the reference does, in another order or precision."""

    name: str
    reference: Function
    answer: Function
    kinds: tuple[torch.dtype, ...] = ALL


def wide(function: Function) -> Function:
    """Return the function computed in float32, or in float64, and rounded once."""

    def rounded(x: Tensor) -> Tensor:
        made: Tensor = function(x if x.dtype == torch.float64 else x.float())
        return made.to(x.dtype)

    return rounded


def tiled_sum(x: Tensor) -> Tensor:
    """Sum tile by tile, and then the sums in order."""
    parts = [part.sum(-1) for part in x.split(PART, -1)]
    total: Tensor = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def tree_sum(x: Tensor) -> Tensor:
    """Sum neighbours, then neighbours of the sums."""
    while x.shape[-1] > 1:
        x = functional.pad(x, (0, x.shape[-1] % 2))
        x = x[..., ::2] + x[..., 1::2]
    return x[..., 0]


def kahan_sum(x: Tensor) -> Tensor:
    """Sum tiles with a compensation."""
    total = torch.zeros_like(x[..., 0])
    lost = torch.zeros_like(total)
    for part in x.split(PART, -1):
        step = part.sum(-1) - lost
        after = total + step
        lost, total = (after - total) - step, after
    return total


def stepped_softmax(x: Tensor) -> Tensor:
    """Round every step to the type of the input."""
    powers = torch.exp(x - x.amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


def online_softmax(x: Tensor) -> Tensor:
    """Keep a running maximum and a running sum."""
    most = torch.full_like(x[..., :1], -torch.inf)
    total = torch.zeros_like(most)
    for part in x.split(PART, -1):
        new = torch.maximum(most, part.amax(-1, keepdim=True))
        total = total * torch.exp(most - new) + torch.exp(part - new).sum(-1, keepdim=True)
        most = new
    return torch.exp(x - most) / total


def stepped_norm(x: Tensor) -> Tensor:
    """Normalize by statistics in float32; each factor is rounded to the type of the input."""
    whole = x if x.dtype == torch.float64 else x.float()
    middle = whole - whole.mean(-1, keepdim=True)
    scale = torch.rsqrt(middle.square().mean(-1, keepdim=True) + 1e-5)
    return middle.to(x.dtype) * scale.to(x.dtype)


def layer_norm(x: Tensor) -> Tensor:
    """Normalize rows as torch does."""
    return functional.layer_norm(x, x.shape[-1:])


def factor(x: Tensor) -> Tensor:
    """Return the second factor of a product, of the type and width of the first."""
    made = torch.randn(x.shape[-1], 48, generator=torch.Generator().manual_seed(5))
    return made.bfloat16().to(x.dtype)


def split_product(x: Tensor) -> Tensor:
    """Multiply in four parts, each rounded to the type of the input."""
    weight = factor(x)
    first, *others = (wide_product(x[:, i::4], weight[i::4]) for i in range(4))
    for other in others:
        first = first + other
    return first


def wide_product(x: Tensor, weight: Tensor) -> Tensor:
    """Multiply with sums in float32."""
    return x @ weight if x.dtype == torch.float64 else (x.float() @ weight.float()).to(x.dtype)


def sequential_product(x: Tensor) -> Tensor:
    """Add the products of one column after the other."""
    weight = factor(x)
    total = x[:, :1] * weight[:1]
    for place in range(1, x.shape[1]):
        total = torch.addcmul(total, x[:, place : place + 1], weight[place : place + 1])
    return total


def attention(x: Tensor) -> Tensor:
    """Attend with the rows as queries, keys and values."""
    rows = x[None, :, :64]
    return functional.scaled_dot_product_attention(rows, rows, rows).squeeze(0)


def stepped_attention(x: Tensor) -> Tensor:
    """Attend with scores in float32, and probabilities rounded to the type of the input."""
    rows = x[:, :64]
    whole = rows if x.dtype == torch.float64 else rows.float()
    scores = whole @ whole.T * rows.shape[1] ** -0.5
    return torch.softmax(scores, -1).to(x.dtype) @ rows


def block_cumsum(x: Tensor) -> Tensor:
    """Sum prefixes of blocks, and add the sum of the earlier blocks."""
    found, before = [], torch.zeros_like(x[..., :1])
    for part in x.split(PART, -1):
        found.append(part.cumsum(-1) + before)
        before = found[-1][..., -1:]
    return torch.cat(found, -1)


def image(x: Tensor) -> Tensor:
    """Return the elements as images of 16 channels."""
    count = max(x.numel() // (16 * 144), 1)
    flat = x.reshape(-1).repeat(2304 // x.numel() + 1)
    return flat[: count * 2304].reshape(count, 16, 12, 12)


def kernel(x: Tensor) -> Tensor:
    """Return the weights of a convolution of 16 to 24 channels."""
    made = torch.randn(24, 16, 3, 3, generator=torch.Generator().manual_seed(6)) / 12
    return made.to(x.dtype)


def convolution(x: Tensor) -> Tensor:
    """Convolve directly."""
    return functional.conv2d(image(x), kernel(x), padding=1)


def winograd(x: Tensor) -> Tensor:
    """Convolve by Winograd F(4x4, 3x3)."""
    rows = [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0]]
    rows += [[0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]]
    b = torch.tensor(rows, dtype=x.dtype)
    third = [[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]
    g = torch.tensor(third, dtype=x.dtype) / torch.tensor([4] + [24] * 5, dtype=x.dtype)[:, None]
    g[0, 0] = 0.25
    back = [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]]
    a = torch.tensor(back, dtype=x.dtype)
    tiles = functional.pad(image(x), (1, 1, 1, 1)).unfold(2, 6, 4).unfold(3, 6, 4)
    inputs = b @ tiles @ b.T
    weights = g @ kernel(x) @ g.T
    middle = torch.einsum("ocij,nchwij->nohwij", weights, inputs)
    made = a @ middle @ a.T
    return made.permute(0, 1, 2, 4, 3, 5).reshape(made.shape[0], 24, 12, 12)


def unfolded(x: Tensor) -> Tensor:
    """Convolve as a product with unfolded inputs."""
    images = image(x)
    columns = functional.unfold(images, 3, padding=1)
    return (kernel(x).reshape(24, -1) @ columns).reshape(images.shape[0], 24, 12, 12)


def logsumexp(x: Tensor) -> Tensor:
    """Sum exponentials below the maximum, and take the logarithm."""
    most = x.amax(-1, keepdim=True)
    return (torch.exp(x - most).sum(-1, keepdim=True).log() + most)[..., 0]


def stepped_gelu(x: Tensor) -> Tensor:
    """Compute GELU with every step rounded to the type of the input."""
    return x * 0.5 * (1 + torch.erf(x * 0.5**0.5))


def elu(x: Tensor) -> Tensor:
    """Compute ELU by an exponential minus one."""
    return torch.where(x > 0, x, x.exp() - 1)


def _squares(add: Function) -> Function:
    return wide(lambda x: add(x.square()) / x.shape[-1])


MEAN_SQUARE = wide(lambda x: x.square().mean(-1))
SUM = wide(lambda x: x.sum(-1))
PRODUCT = wide(lambda x: x @ factor(x))
FUNCTIONS = (
    Implementation("tiled sum", SUM, wide(tiled_sum)),
    Implementation("tree sum", SUM, wide(tree_sum)),
    Implementation("Kahan sum", SUM, wide(kahan_sum)),
    Implementation("tiled mean square", MEAN_SQUARE, _squares(tiled_sum)),
    Implementation("tree mean square", MEAN_SQUARE, _squares(tree_sum)),
    Implementation("Kahan mean square", MEAN_SQUARE, _squares(kahan_sum)),
    Implementation("split-k product", PRODUCT, split_product),
    Implementation("sequential product", PRODUCT, wide(sequential_product)),
    Implementation("softmax in steps", lambda x: torch.softmax(x, -1), stepped_softmax),
    Implementation("online softmax", lambda x: torch.softmax(x, -1), wide(online_softmax)),
    Implementation("logsumexp", wide(lambda x: torch.logsumexp(x, -1)), wide(logsumexp)),
    Implementation("normalization in steps", layer_norm, stepped_norm),
    Implementation("fused normalization", stepped_norm, wide(layer_norm)),
    Implementation("attention in steps", attention, stepped_attention),
    Implementation("fused attention", stepped_attention, wide(attention)),
    Implementation("cumulative sum in blocks", wide(lambda x: x.cumsum(-1)), wide(block_cumsum)),
    Implementation("Winograd F(4x4, 3x3)", convolution, winograd, SINGLE),
    Implementation("unfolded convolution", wide(convolution), wide(unfolded)),
    Implementation("GELU in steps", functional.gelu, stepped_gelu),
    Implementation("fused GELU", functional.gelu, wide(functional.gelu)),
    Implementation("sigmoid in steps", torch.sigmoid, lambda x: 1 / (1 + torch.exp(-x))),
    Implementation("SiLU in steps", functional.silu, lambda x: x * torch.sigmoid(x)),
    Implementation("tanh by sigmoid", torch.tanh, wide(lambda x: 2 * torch.sigmoid(2 * x) - 1)),
    Implementation("ELU by exp", functional.elu, wide(elu)),
)
"""Every implementation. Sums of references are in float32 or better, as torch's are."""
