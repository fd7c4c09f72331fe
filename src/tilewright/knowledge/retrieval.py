"""Retrieval of modules: the headers are ranked first, then the best few modules are returned.

The score of a module sums over the distinct words of the query. A word counts 3 if a keyword has
it, and 2 if the title has it. It counts 2 if the name of one of the module's devices has it. A
module with a score gains 1 if it names the language, and 2 if it names the device of the query.
Equal scores are ordered by name, so that equal queries have equal answers.

A module for certain devices is found once the query names a bottleneck or its device. So general
advice comes first, and hardware where its limit matters (KernelEvolve, arXiv 2512.23236).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tilewright.errors import ConfigError
from tilewright.knowledge.base import ANY, KnowledgeBase, KnowledgeModule, ModuleHeader

MAX_MODULES = 4
"""Most modules of an answer: more would push the program out of the reader's attention."""
MAX_TOKENS = 4000
"""Most estimated tokens of an answer, about an eighth of a context of 32,000 tokens."""
KEYWORD_SCORE, TITLE_SCORE, DEVICE_SCORE = 3, 2, 2
"""Points of a word, for each place that has it."""
SAME_LANGUAGE_SCORE, SAME_DEVICE_SCORE = 1, 2
"""Points of a module that names the language or the device of the query."""
STOP_WORDS = frozenset(
    (
        *("a", "an", "and", "are", "as", "at", "be", "by", "can", "case", "do", "does", "each"),
        *("first", "for", "from", "has", "how", "i", "if", "in", "into", "is", "it", "its"),
        *("kernel", "kernels", "may", "more", "my", "need", "no", "none", "not", "of", "on"),
        *("one", "only", "or", "per", "so", "than", "that", "the", "there", "this", "to", "too"),
        *("two", "use", "used", "what", "when", "where", "which", "with"),
    )
)
"""Words that tell no module from another."""
BOTTLENECKS = (
    *("bandwidth", "bank", "bottleneck", "cache", "compute", "dram", "hbm", "l2", "latency"),
    *("launch", "limit", "memory", "occupancy", "register", "roofline", "shared", "spill", "stall"),
    *("tensor", "throughput"),
)
"""Words that name a limit of the hardware."""
ENDINGS = ("ing", "ed", "es", "s", "e")
"""Endings of which a word loses the first that it has, so that forms of one word are equal."""
MIN_STEM = 3
"""Fewest letters that are left of a word without its ending."""

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class RankedModule:
    """A module that fits a query, with its score."""

    module: KnowledgeModule
    score: int


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, without `STOP_WORDS` and without endings."""
    return frozenset(_stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS)


def ranked(
    base: KnowledgeBase, words: str, *, language: str | None = None, device: str | None = None
) -> tuple[RankedModule, ...]:
    """Return the modules that fit a query, best first.

    Args:
        base: The modules.
        words: The query: any text.
        language: Only modules that apply to this language, if it is given.
        device: The model of the device. Modules for other models do not fit.
    """
    query = words_of(words)
    scores = [(name, score(header, query, language, device)) for name, header in base.index()]
    best = sorted((-points, name) for name, points in scores if points)
    modules = base.modules(name for _, name in best)
    return tuple(
        RankedModule(module, -points) for module, (points, _) in zip(modules, best, strict=True)
    )


def retrieve(
    base: KnowledgeBase,
    words: str,
    *,
    language: str | None = None,
    device: str | None = None,
    most_modules: int = MAX_MODULES,
    most_tokens: int = MAX_TOKENS,
) -> tuple[KnowledgeModule, ...]:
    """Return the best modules for a query within two limits, general ones first.

    A module that no longer fits into `most_tokens` makes way for the next one.

    Raises:
        ConfigError: a module of the base exceeds `most_tokens` alone.
    """
    refuse_larger(base, most_tokens)
    taken: list[KnowledgeModule] = []
    left = most_tokens
    for match in ranked(base, words, language=language, device=device):
        if len(taken) < most_modules and match.module.tokens <= left:
            taken.append(match.module)
            left -= match.module.tokens
    return tuple(sorted(taken, key=lambda module: not module.general))


def refuse_larger(base: KnowledgeBase, most_tokens: int) -> None:
    """Raise ConfigError if a module alone exceeds a limit, since no query could show it."""
    largest = max(base.entries, key=lambda module: module.tokens)
    if largest.tokens > most_tokens:
        raise ConfigError(
            f"module {largest.name!r} has about {largest.tokens} tokens, and the limit is "
            f"{most_tokens}; raise the limit or split the module"
        )


def score(
    header: ModuleHeader, query: frozenset[str], language: str | None, device: str | None
) -> int:
    """Return the score of a module by its header alone; 0 if it does not fit."""
    if language is not None and not {ANY, language} & set(header.languages):
        return 0
    if not _fits_device(header, query, device):
        return 0
    keywords, title = words_of(" ".join(header.keywords)), words_of(header.title)
    names = frozenset[str]() if ANY in header.devices else words_of(" ".join(header.devices))
    points = KEYWORD_SCORE * len(query & keywords)
    points += TITLE_SCORE * len(query & title)
    points += DEVICE_SCORE * len(query & names)
    if points and language in header.languages:
        points += SAME_LANGUAGE_SCORE
    if points and device is not None and names:
        points += SAME_DEVICE_SCORE
    return points


def _fits_device(header: ModuleHeader, query: frozenset[str], device: str | None) -> bool:
    if ANY in header.devices:
        return True
    named = any(words_of(name) <= query for name in header.devices)
    if device is None:
        return named
    model = words_of(device)
    fits = any(words_of(name) <= model for name in header.devices)
    return fits and (named or bool(query & words_of(" ".join(BOTTLENECKS))))


def _stem(word: str) -> str:
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= MIN_STEM:
            return word if word.endswith("ss") else word.removesuffix(ending)
    return word
