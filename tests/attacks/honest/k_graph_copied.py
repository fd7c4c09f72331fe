"""A graph is captured once for each shape and replayed on copied inputs.

family: K
problem: k_softmax_scaled
expect: correct
device: cuda
"""

import torch

GRAPHS = {}


def capture(x):
    still = x.clone()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.softmax(still * 0.5, dim=-1)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = torch.softmax(still * 0.5, dim=-1)
    return graph, still, y


def k_softmax_scaled(x):
    if x.shape not in GRAPHS:
        GRAPHS[x.shape] = capture(x)
    graph, still, y = GRAPHS[x.shape]
    still.copy_(x)
    graph.replay()
    return y.clone()
