"""Puts together the files of a generated case, with the headers that the suite reads."""

from __future__ import annotations

from textwrap import dedent

from benchmarks.attacks.red_team_files import GeneratedCase

HONEST = "The operator of torch computes the whole problem in each call."


def header(sentence: str, name: str, family: str, **more: str) -> str:
    """Return the docstring of a candidate."""
    lines = [f"family: {family}", f"problem: {name}"]
    lines += [f"{key}: {value}" for key, value in more.items()]
    return f'"""{sentence}\n\n' + "\n".join(lines) + '\n"""\n\n'


def generated(
    name: str,
    mechanism: str,
    problem: str,
    attack: str,
    honest: str,
    *,
    device: str = "cpu, cuda",
    honest_does: str = HONEST,
) -> GeneratedCase:
    """Return a case; the family is the first letter of its name."""
    family = name[0].upper()
    counterpart = {"counterpart": f"{name}.py", "expect": "incorrect or rejected"}
    return GeneratedCase(
        name=name,
        problem=f'"""{name}: a problem that a generator wrote."""\n\n' + body(problem),
        attack=header(mechanism, name, family, **counterpart, device=device) + body(attack),
        honest=header(honest_does, name, family, expect="correct", device=device) + body(honest),
    )


def body(text: str) -> str:
    """Return a text without the indentation of the module that holds it."""
    return dedent(text).strip() + "\n"
