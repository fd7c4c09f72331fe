"""Did the candidate do the work itself: evidence in, findings out. One file a family."""
