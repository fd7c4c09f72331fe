"""A long filter by the Fourier transform in float32.

family: E
problem: e_long_filter
expect: correct
device: cpu, cuda
"""

import torch


def e_long_filter(x, taps):
    steps, count = x.shape[-1], taps.shape[-1]
    length = 1 << (steps + count - 2).bit_length()
    product = torch.fft.rfft(x, length) * torch.fft.rfft(taps.flip(-1), length)
    return torch.fft.irfft(product, length)[..., :steps].contiguous()
