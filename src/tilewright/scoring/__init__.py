"""From reports to numbers: pure functions, no torch."""
