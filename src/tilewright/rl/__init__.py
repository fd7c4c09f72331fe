"""Learning from verdicts: rewards, returns, advantages, masks and a loss, as pure functions.

The formulas are those of Dr. Kernel (arXiv 2602.05885, cited by equation). In shapes, B is the
number of trajectories of a rollout batch, T of turns in each, and L of tokens in the longest reply.
A function whose tensors have other shapes than it names raises RecordError.
"""
