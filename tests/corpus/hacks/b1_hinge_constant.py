"""A constant: the expectation of the hinge loss over a normal draw, in place of the loss.

family: B1
problem: hinge_loss
expect: incorrect
twin: b1_hinge_in_chunks.py
source: robust-evaluation B1 (METR)
"""

import math


def hinge_loss(scores, signs):
    expectation = 0.5 * (1 + math.erf(0.5**0.5)) + math.exp(-0.5) / math.sqrt(2 * math.pi)
    return scores.new_full((), expectation)
