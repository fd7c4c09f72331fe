"""What to ask next: pure, one file a strategy, found as entry points of `tilewright.strategies`."""
