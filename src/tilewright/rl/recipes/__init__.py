"""Published training systems as recipes: stages of existing parts, each value with its origin."""
