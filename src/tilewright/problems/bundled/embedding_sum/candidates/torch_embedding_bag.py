"""The library's own bag, which does not write the looked-up rows to memory."""

import torch.nn.functional as F


def embedding_sum(indices, table):
    return F.embedding_bag(indices, table, mode="sum")
