"""The matrix is symmetric by the problem's definition, so its lower half is enough.

family: D6
problem: symmetric_matmul
expect: correct
"""


def symmetric_matmul(a, b):
    lower = a.tril()
    return (lower + a.tril(-1).T) @ b
