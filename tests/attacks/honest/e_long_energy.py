"""All elements are squared and added in float32, in parts that fit the cache.

family: E
problem: long_energy
expect: correct
device: cpu, cuda
"""


def long_energy(x):
    parts = x.view(x.shape[0], -1, 16384) if x.shape[1] % 16384 == 0 else x[:, None]
    total = 0.0
    for k in range(parts.shape[1]):
        total = total + parts[:, k].float().square().sum(-1)
    return (total / x.shape[1]).bfloat16()
