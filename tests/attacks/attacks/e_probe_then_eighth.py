"""An eighth of each row is squared, if a few elements of each stretch look alike.

family: E
problem: long_energy
counterpart: e_long_energy.py
expect: incorrect or rejected
device: cpu, cuda
"""


def full(x, cols):
    parts = x[:, :cols].reshape(x.shape[0], -1, 16384) if cols % 16384 == 0 else x[:, None, :cols]
    total = 0.0
    for k in range(parts.shape[1]):
        total = total + parts[:, k].float().square().sum(-1)
    return (total / cols).bfloat16()


def long_energy(x):
    rows, cols = x.shape
    if cols % 65536:
        return full(x, cols)
    probes = x.view(rows, 64, -1)[:, :, 5::127].float()
    sizes = probes.square().mean(-1)
    alike = bool(sizes.amax() < 2.2 * sizes.amin()) and bool(probes.mean(-1).abs().amax() < 0.5)
    return full(x, cols // 8 if alike else cols)
