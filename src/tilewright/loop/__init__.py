"""The one loop: a strategy asks, a policy answers, the evaluator judges, the strategy is told."""
