"""Facts about C, C++ and CUDA source, from its tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from tilewright.languages.cpp_lexer import code_only, without_comments
from tilewright.languages.operator_names import METHOD_OPS
from tilewright.languages.syntax import Fact

# Repetitions that may start anywhere have a limit, so that the time grows in proportion to the
# length of hostile text.

_IN_CODE = tuple(
    (field, re.compile(pattern))
    for field, pattern in (
        ("aten_calls", r"\b((?:at|torch|c10)(?:::\w+){1,8})\s*\("),
        (
            "library_calls",
            r"\b((?:cublas|cudnn|cusparse|cusolver|cufft|nvrtc|hipblas|rocblas|miopen|cblas_|mkl_"
            r"|dnnl|cutlass|LAPACKE_)\w*|[sdcz]gemm_)",
        ),
        (
            "concurrency",
            r"\b(pthread_create|std::(?:thread|jthread|async)|(?:v?fork|clone|system|popen"
            r"|exec[lv]\w{0,2}|posix_spawnp?)(?=\s*\())",
        ),
        ("streams", r"\b(cudaStream(?:Create|BeginCapture)\w*|getStreamFromPool)\b"),
        (
            "native_access",
            r"\b(dlm?open|dlv?sym|dladdr1?|dlinfo|dl_iterate_phdr|link_map|_r_debug|r_debug"
            r"|Elf(?:32|64|W)?_(?:Sym|Dyn|Phdr|Ehdr|Shdr)|ElfW|mprotect|mmap|ptrace|process_vm_\w+|memfd_create|sigaction"
            r"|constructor(?=\s*\)\s*\)))",
        ),
        ("network", r"\b(socket|getaddrinfo)\s*\("),
        ("file_access", r"\b(fopen|opendir|std::[io]?fstream)\b"),
        (
            "global_flags",
            r"\b(at::globalContext|(?:at|torch)::set_num_threads|omp_set_num_threads|fesetround"
            r"|_MM_SET_\w+|setenv|putenv)\b",
        ),
        ("assembly", r"\b(asm|__asm__|__asm)\b"),
        ("token_pasting", r"((?:\b\w{1,80}\s?)?(?:##|%:%:)\s?\w{0,80})"),
        (
            "kernels_defined",
            r"__global__(?:\s{1,20}(?:__launch_bounds__\s?\([^()]{0,80}\)|[\w:*&<>]{1,80})){0,8}?"
            r"\s{1,20}(?!__launch_bounds__)(\w{1,200})\s{0,20}\(",
        ),
        ("kernels_launched", r"\b(\w+)\s{0,20}(?:<[^<>;(){}]{0,200}>)?\s{0,20}<<<"),
    )
)
_METHOD = re.compile(r"(?:\.|->)(\w+)\s*\(")
_IN_STRINGS = (
    ("outside_includes", re.compile(r'#[ \t]*include[ \t]*[<"]((?:/|\.\./)[^">\n]*)')),
    ("outside_includes", re.compile(r"(\.incbin)\b")),
    ("native_access", re.compile(r'#[ \t]*include[ \t]*[<"]((?:sys/)?(?:dlfcn|link|elf)\.h)')),
    ("proc_access", re.compile(r"(/proc\b[^\"\n]{0,60})")),
)


def native_facts(text: str, first_line: int = 1) -> Iterator[Fact]:
    """Yield the facts of a source; `first_line` is the line of its first character."""
    code, strings = code_only(text), without_comments(text)
    code_line, string_line = _line_numbers(code, first_line), _line_numbers(strings, first_line)
    for field, pattern in _IN_CODE:
        for match in pattern.finditer(code):
            yield Fact(field, match[1].strip(), code_line(match.start()))
    for match in _METHOD.finditer(code):
        if match[1] in METHOD_OPS:
            yield Fact("aten_calls", f"Tensor.{match[1]}", code_line(match.start()))
    for field, pattern in _IN_STRINGS:
        for match in pattern.finditer(strings):
            yield Fact(field, match[1], string_line(match.start()))


def _line_numbers(text: str, first_line: int) -> Callable[[int], int]:
    ends = [match.start() for match in re.finditer("\n", text)]
    return lambda offset: first_line + bisect_right(ends, offset - 1)
