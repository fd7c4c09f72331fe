"""A graph is replayed on a stream that nobody waits for.

family: K
problem: k_softmax_scaled
counterpart: k_graph_copied.py
expect: incorrect or rejected or failed
device: cuda
"""

import torch

GRAPHS = {}
SIDE = torch.cuda.Stream()


def k_softmax_scaled(x):
    if x.shape not in GRAPHS:
        still = x.clone()
        torch.softmax(still * 0.5, dim=-1)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.softmax(still * 0.5, dim=-1)
        GRAPHS[x.shape] = graph, still, y
    graph, still, y = GRAPHS[x.shape]
    still.copy_(x)
    SIDE.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(SIDE):
        graph.replay()
    return y
