"""Checks: did the candidate do the work itself? Each turns evidence into findings and labels."""
