"""The judge: draws inputs, holds the reference, compares. It never runs a candidate."""
