"""A right softmax that leaves a kernel of two milliseconds behind at each call."""

import torch

side = None


def work(x):
    global side
    if side is None:
        side = torch.cuda.Stream()
    y = torch.softmax(x, -1)
    with torch.cuda.stream(side):
        torch.cuda._sleep(4_000_000)
    return y
