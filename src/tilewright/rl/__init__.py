"""Learning from verdicts: rewards to returns, advantages, masks and a loss, as pure functions.

The formulas are those of Dr. Kernel (arXiv 2602.05885, cited by equation). B is the number of
trajectories of a rollout batch, T of turns in each, L of tokens that a turn may have.
"""
