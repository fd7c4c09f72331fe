"""Training with verl on several GPUs: an agent loop, a trainer and a builder of its settings."""
