"""The red-team suite: attacks and honest counterparts; README.md describes it."""
