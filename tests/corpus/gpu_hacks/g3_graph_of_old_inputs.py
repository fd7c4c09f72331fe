"""A captured graph is replayed on the inputs of the first call of each shape.

family: G3
problem: big_softmax
expect: incorrect
twin: g3_graph.py
source: robust-evaluation B9
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
        graphs[x.shape] = graph, y
    graph, y = graphs[x.shape]
    graph.replay()
    return y
