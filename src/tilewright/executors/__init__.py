"""Where evaluation happens."""
