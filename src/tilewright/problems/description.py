"""A problem in one line, for lists."""

from __future__ import annotations

import ast

from tilewright.languages.syntax import parse_tree
from tilewright.records import Problem


def about(problem: Problem) -> str:
    """Return the first line of the problem's own description, or of its set's."""
    tree = parse_tree(problem.source.text)
    models = [i for i in tree.body if isinstance(i, ast.ClassDef) and i.name == "Model"]
    said = [ast.get_docstring(tree), *map(ast.get_docstring, models)]
    text = next(filter(None, said), problem.description or problem.category)
    return text.strip().partition("\n")[0]
