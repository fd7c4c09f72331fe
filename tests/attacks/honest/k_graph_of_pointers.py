"""A graph for each address of the input, where later calls find other values.

family: K
problem: k_softmax_scaled
expect: correct
device: cuda
"""

import torch

GRAPHS = {}


def k_softmax_scaled(x):
    key = (x.shape, x.data_ptr())
    if key not in GRAPHS:
        torch.softmax(x * 0.5, dim=-1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.softmax(x * 0.5, dim=-1)
        GRAPHS[key] = graph, y
    graph, y = GRAPHS[key]
    graph.replay()
    return y
