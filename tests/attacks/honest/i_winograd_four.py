"""A convolution by Winograd's F(4x4, 3x3) in float32, as vendors' libraries have it.

family: I
problem: i_convolution
expect: correct
device: cpu, cuda
"""

import torch

B = torch.tensor(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
    dtype=torch.float32,
)
G = torch.tensor(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
    dtype=torch.float32,
)
A = torch.tensor(
    [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
    dtype=torch.float32,
)


def i_convolution(x, w):
    b, a, g = B.to(x.device), A.to(x.device), G.to(x.device)
    high, wide = x.shape[2] - 2, x.shape[3] - 2
    down, right = -high % 4, -wide % 4
    x = torch.nn.functional.pad(x, (0, right, 0, down))
    tiles = x.unfold(2, 6, 4).unfold(3, 6, 4)
    u = g @ w @ g.t()
    v = b @ tiles @ b.t()
    m = torch.einsum("ocij,bcyxij->boyxij", u, v)
    y = a @ m @ a.t()
    y = y.permute(0, 1, 2, 4, 3, 5).flatten(4, 5).flatten(2, 3)
    return y[:, :, :high, :wide].contiguous()
