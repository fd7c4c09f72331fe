"""Sets of problems: the bundled ones, and how a file becomes a problem."""
