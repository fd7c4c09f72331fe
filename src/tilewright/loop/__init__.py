"""The search loop: a strategy issues requests, a policy answers, and the evaluator judges."""
