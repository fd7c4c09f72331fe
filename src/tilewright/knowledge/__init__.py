"""The knowledge base: short notes for writers of kernels, and their retrieval."""

from tilewright.knowledge.base import (
    ANY,
    BUNDLED,
    KnowledgeBase,
    KnowledgeModule,
    load_knowledge,
    read_module,
)
from tilewright.knowledge.retrieval import RankedModule, ranked, retrieve, words_of

__all__ = [
    "ANY",
    "BUNDLED",
    "KnowledgeBase",
    "KnowledgeModule",
    "RankedModule",
    "load_knowledge",
    "ranked",
    "read_module",
    "retrieve",
    "words_of",
]
