"""The tests of tilewright; CONTRIBUTING.md says which folder holds what."""
