"""Tests of the house itself: what must be true of every file."""
