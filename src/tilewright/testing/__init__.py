"""SynthKernel-1: synthetic programs with exact verdicts, for training runs without a device."""
