"""All operators of the audit, by name.

A library that has an operator is judged on its shapes, and all libraries on the same ones.
"""

from __future__ import annotations

from benchmarks.audit.operators import attention, losses, products, rows, vision
from benchmarks.audit.operators.base import DTYPES, Case, Operator, problem_text

__all__ = ["DTYPES", "OPERATORS", "Case", "Operator", "problem_text"]

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for group in (rows, losses, products, attention, vision)
    for operator in group.OPERATORS
}
