"""Work that the candidate left to others: library operators, torch.compile. Labels alone."""

from __future__ import annotations

import re

from tilewright.checks.evidence import Evidence, Observation
from tilewright.languages.operator_names import name_set
from tilewright.records import Label
from tilewright.records.codes import LabelName

GLUE = name_set(
    """
    alias as_strided clone contiguous copy_ detach empty empty_like empty_strided expand fill_
    flatten full full_like is_same_size lift_fresh new_empty new_zeros ones ones_like permute
    requires_grad_ reshape _reshape_alias resize_ select set_ slice split squeeze sym_size t to
    _to_copy transpose unbind unsqueeze _unsafe_view view zero_ zeros zeros_like
    """
)
"""Operators that allocate, move or view values but compute nothing."""

_LOOKUP = re.compile(
    r"dl\w+|(_)?r_debug|link_map|Elf\w*_\w+|ElfW|(sys/)?(dlfcn|link|elf)\.h"
    r"|ctypes\.(CDLL|PyDLL|LibraryLoader|(cdll|pydll)(\.\w+)*)|_ctypes\.dl\w+|cffi\..*dlopen"
)
"""Names of `native_access` that find functions of libraries to which nothing was linked."""


class LibraryUse:
    """Names the library operators that a candidate in a kernel language uses."""

    name = "library_use"

    def inspect(self, evidence: Evidence) -> Observation:
        """Label library operators of a candidate with own kernels, and compiled graphs."""
        labels = []
        used = sorted(
            name
            for name in evidence.operator_counts
            if name.startswith("aten::") and name.removeprefix("aten::") not in GLUE
        )
        detail = ", ".join(used)
        if not used and (named := _named_in_source(evidence)):
            detail = "in the source, not seen when called: " + ", ".join(named)
        if lookups := _symbol_lookups(evidence):
            found = "it looks up symbols of libraries: " + ", ".join(lookups)
            detail = "; ".join(filter(None, (found, detail)))
        if evidence.language != "torch" and detail:
            labels.append(Label(name=LabelName.LIBRARY_CALL, detail=detail[:200]))
        compiled = [item.name for item in evidence.features.compiled if "compile" in item.name]
        if compiled:
            labels.append(
                Label(name=LabelName.TORCH_COMPILE, detail=f"the source calls {compiled[0]}")
            )
        return Observation(labels=tuple(labels))


def _named_in_source(evidence: Evidence) -> list[str]:
    """Return the library operators that the source names."""
    # A candidate can recognise the call in which operators are counted, and compute otherwise.
    features = evidence.features
    sightings = (*features.torch_ops, *features.aten_calls, *features.library_calls)
    names = {item.name for item in sightings}
    return sorted(name for name in names if re.split(r"::|\.", name)[-1] not in GLUE)


def _symbol_lookups(evidence: Evidence) -> list[str]:
    """Return the ways in the source to find a function of a library without linking to it."""
    features = evidence.features
    names = {item.name for item in features.native_access if _LOOKUP.fullmatch(item.name)}
    # The addresses of loaded libraries, from which their tables of symbols can be read.
    names |= {item.name for item in features.proc_access if re.search(r"/map(s|_files)", item.name)}
    return sorted(names)


CHECK = LibraryUse()
