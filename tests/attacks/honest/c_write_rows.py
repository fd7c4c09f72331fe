"""The matrix is copied, and the rows are written into the copy.

family: C
problem: write_rows
expect: correct
device: cpu, cuda
"""

def write_rows(x, rows, places):
    y = x.clone()
    y[places] = rows
    return y
