"""Engines: the trainers that tilewright plugs into, one package each, imported on use."""
