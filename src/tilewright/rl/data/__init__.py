"""Data to learn from: rows out of event logs, and runs out of the data of others. No torch."""
