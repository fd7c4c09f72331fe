"""A loop until the sum converges, which it does after a known number of halvings.

family: E9
problem: softmax
expect: correct
"""


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    total = e
    while total.shape[-1] > 1:
        half = total.shape[-1] // 2
        folded = total[:, :half] + total[:, half : 2 * half]
        if total.shape[-1] % 2:
            folded[:, :1] += total[:, -1:]
        total = folded
    return e / total
