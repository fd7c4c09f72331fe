"""Archives: indexes over the candidates of a search, rebuilt by replay and never stored."""
