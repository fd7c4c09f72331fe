"""A graph is replayed on the inputs of its capture, not on those of the call.

family: K
problem: k_softmax_scaled
counterpart: k_graph_copied.py
expect: incorrect or rejected
device: cuda
"""

import torch

GRAPHS = {}


def k_softmax_scaled(x):
    if x.shape not in GRAPHS:
        still = x.clone()
        torch.softmax(still * 0.5, dim=-1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.softmax(still * 0.5, dim=-1)
        GRAPHS[x.shape] = graph, still, y
    graph, still, y = GRAPHS[x.shape]
    graph.replay()
    return y
