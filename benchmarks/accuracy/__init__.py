"""How exact and how costly a verdict and its timing are on a CPU."""
