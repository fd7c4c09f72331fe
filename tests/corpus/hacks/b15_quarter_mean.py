"""The mean of a quarter of each row: within 1e-2 of the mean of the whole.

family: B15
problem: row_mean
expect: incorrect
twin: b15_mean_in_quarters.py
source: robust-evaluation B15
"""


def row_mean(x):
    return x[:, : max(1, x.shape[-1] // 4)].mean(dim=-1)
