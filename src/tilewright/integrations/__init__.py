"""Integrations: the verdicts of tilewright under the names of other tools."""
