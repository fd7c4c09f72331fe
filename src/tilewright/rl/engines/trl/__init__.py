"""The adapter of TRL: no other room imports it."""
