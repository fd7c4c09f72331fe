"""Mean of squares minus square of mean, after a shift by one value of each row.

family: D2
problem: moments
expect: correct
"""


def moments(x):
    first = x[:, :1].double()
    shifted = x.double() - first
    mean = shifted.mean(-1)
    variance = (shifted - mean.unsqueeze(-1)).square().mean(-1)
    return (mean + first[:, 0]).float(), variance.float(), x.amax(-1)
