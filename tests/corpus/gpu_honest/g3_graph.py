"""A captured graph, its inputs copied in and its output copied out.

family: G3
problem: big_softmax
expect: correct
"""

import torch

graphs = {}


def big_softmax(x):
    if x.shape not in graphs:
        held = x.clone()
        torch.softmax(held, -1)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = torch.softmax(held, -1)
        graphs[x.shape] = graph, held, y
    graph, held, y = graphs[x.shape]
    held.copy_(x)
    graph.replay()
    return y.clone()
