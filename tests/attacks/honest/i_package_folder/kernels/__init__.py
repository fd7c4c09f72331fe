"""Programs on rows."""
