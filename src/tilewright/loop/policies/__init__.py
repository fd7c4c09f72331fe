"""Sources of answers: a model at a server, a local model, a script, or a recording."""
