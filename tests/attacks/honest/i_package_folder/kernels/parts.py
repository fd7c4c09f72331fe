"""Parts of moments."""


def centre(x):
    return x.sum(dim=-1) / x.shape[-1]


def spread(x, mean):
    return x.sub(mean[:, None]).square_().mean(dim=-1)
