"""Another stream writes the zeros of the output while the call waits for the launch gate.

family: D
problem: few_hot_rows
counterpart: d_few_hot_rows.py
expect: incorrect or rejected
device: cuda
"""

import torch

side = []


def few_hot_rows(labels, weights):
    if not side:
        side.append(torch.cuda.Stream())
    with torch.cuda.stream(side[0]):
        hot = torch.zeros(len(labels), 1024, device=weights.device)
    torch.cuda.current_stream().wait_stream(side[0])
    return hot.scatter_(1, labels[:, None], weights[:, None])
