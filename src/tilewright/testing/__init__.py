"""Checks for plug-ins, and SynthKernel-1: synthetic programs with exact verdicts."""
