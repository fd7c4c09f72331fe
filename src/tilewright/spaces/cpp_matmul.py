"""A space in C++ for a CPU: `relu(x @ w + b)` with register tiles.

A tile of ROWS x COLS sums stays in registers. Eight rows of 32 columns fill them, and so do four
rows of 64 columns. No single move leads from one to the other: the larger tile does not build.
"""

from __future__ import annotations

from tilewright.spaces.space import Knobs, Space

HONEST = {"sums": "float", "tail": "guarded", "result": "computed"}
"""The value of each knob whose other value makes a program wrong."""

HEADER = """\
// relu(x @ w + b): register tiles of {rows} x {cols}, {order} outside, {packing}.
#include "tilewright.h"

#include <algorithm>
#include <cstring>
#include <vector>

constexpr int64_t ROWS = {rows};    // rows of a register tile
constexpr int64_t COLS = {cols};    // columns of a register tile
constexpr int64_t DEPTH = {depth};  // terms of a sum between two stores
static_assert(ROWS * COLS <= 256, "the sums of a tile must fit the vector registers");

struct Shape {{
    int64_t m, n, k;
}};
"""
PACKING_WORDS = {
    "none": "w as it is",
    "panel": "panels of w packed in each call",
    "once": "panels of w packed once",
}
VECTOR = """
typedef float vec __attribute__((vector_size(64)));
constexpr int64_t VECS = COLS / 16;

static inline vec load(const float* p) {
    vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
"""
ROUNDED = """
// Sums are kept in bfloat16, which halves their space.
static inline float stored(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= 0xffff0000u;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
}
"""
TILE_HEAD = """
// Add the terms `first` to `last` to the sums of one whole tile.
static void add_tile(const float* x, const float* w, int64_t stride, float* y, const Shape& s,
                     int64_t first, int64_t last) {
"""
TILE_LOOPS = """\
    float sum[ROWS][COLS] = {};
    for (int64_t p = first; p < last; ++p)
        for (int64_t r = 0; r < ROWS; ++r)
            for (int64_t c = 0; c < COLS; ++c) {
                sum[r][c] += x[r * s.k + p] * w[(p - first) * stride + c];
            }
    for (int64_t r = 0; r < ROWS; ++r)
        for (int64_t c = 0; c < COLS; ++c) y[r * s.n + c] += sum[r][c];
}
"""
TILE_DOTS = """\
    for (int64_t r = 0; r < ROWS; ++r)
        for (int64_t c = 0; c < COLS; ++c) {
            float sum = 0.0f;
            for (int64_t p = first; p < last; ++p)
                sum += x[r * s.k + p] * w[(p - first) * stride + c];
            y[r * s.n + c] += sum;
        }
}
"""
TILE_VECTORS = """\
    vec sum[ROWS][VECS] = {};
    for (int64_t p = first; p < last; ++p) {
        const float* row = w + (p - first) * stride;
#pragma GCC unroll 8
        for (int64_t r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
            for (int64_t v = 0; v < VECS; ++v) sum[r][v] += x[r * s.k + p] * load(row + 16 * v);@
    }
    for (int64_t r = 0; r < ROWS; ++r)
        for (int64_t v = 0; v < VECS; ++v)
            for (int64_t c = 0; c < 16; ++c) y[r * s.n + 16 * v + c] += sum[r][v][c];
}
"""
TILES = {"dots": TILE_DOTS, "loops": TILE_LOOPS, "vectors": TILE_VECTORS}
ROUND = """
        for (int64_t r = 0; r < ROWS; ++r)
            for (int64_t v = 0; v < VECS; ++v)
                for (int64_t c = 0; c < 16; ++c) sum[r][v][c] = stored(sum[r][v][c]);"""
EDGE = """
// The same for the rows and columns that fill no tile.
static void add_edge(const float* x, const float* w, int64_t stride, float* y, const Shape& s,
                     int64_t first, int64_t last, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t p = first; p < last; ++p)
            for (int64_t c = 0; c < cols; ++c)
                y[r * s.n + c] += x[r * s.k + p] * w[(p - first) * stride + c];
}
"""
PACK = """
// Copy a panel of COLS columns, so that its rows lie behind each other.
static void pack(const float* w, float* panel, const Shape& s, int64_t first, int64_t last,
                 int64_t cols) {
    for (int64_t p = first; p < last; ++p, panel += COLS)
        std::copy(w + p * s.n, w + p * s.n + cols, panel);
}
"""
BLOCK_HEAD = """
// Add the terms `first` to `last` to the sums of the tile at (row, col).
static void add_block(const float* x, const float* w, int64_t stride, float* y, const Shape& s,
                      int64_t row, int64_t col, int64_t first, int64_t last) {
    const int64_t rows = std::min(ROWS, s.m - row), cols = std::min(COLS, s.n - col);
    if (rows == ROWS && cols == COLS)
        add_tile(x + row * s.k, w, stride, y + row * s.n + col, s, first, last);
"""
BLOCK_EDGE = """\
    else
        add_edge(x + row * s.k, w, stride, y + row * s.n + col, s, first, last, rows, cols);
"""
MAIN_HEAD = """
extern "C" int matmul_bias_relu(const tw_tensor* in, int, tw_tensor* out, int) {
    const float* x = (const float*)in[0].data;
    const float* w = (const float*)in[1].data;
    const float* bias = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    const Shape s = {in[0].shape[0], in[1].shape[1], in[0].shape[1]};
"""
KEPT_BEFORE = """\
    static std::vector<float> kept;
    static const void* kept_of = nullptr;
    if (kept_of == in[0].data && (int64_t)kept.size() == s.m * s.n) {
        std::copy(kept.begin(), kept.end(), y);
        return 0;
    }
"""
KEPT_AFTER = """\
    kept.assign(y, y + s.m * s.n);
    kept_of = in[0].data;
"""
ONCE = """\
    static std::vector<float> panels;
    static Shape packed = {0, 0, 0};
    const int64_t size = DEPTH * COLS, across = (s.n + COLS - 1) / COLS;
    if (packed.n != s.n || packed.k != s.k) {
        panels.resize((s.k + DEPTH - 1) / DEPTH * across * size);
        for (int64_t first = 0; first < s.k; first += DEPTH)
            for (int64_t col = 0; col < s.n; col += COLS)
                pack(w + col, &panels[(first / DEPTH * across + col / COLS) * size], s, first,
                     std::min(first + DEPTH, s.k), std::min(COLS, s.n - col));
        packed = s;
    }
"""
SUMS = """\
    std::fill(y, y + s.m * s.n, 0.0f);
    for (int64_t first = 0; first < s.k; first += DEPTH) {
        const int64_t last = std::min(first + DEPTH, s.k);
PRAGMA        for (int64_t OUTER = 0; OUTER < OUTER_END; OUTER += OUTER_STEP) {
BUFFER            for (int64_t INNER = 0; INNER < INNER_END; INNER += INNER_STEP) {
BODY            }
        }
    }
"""
LAST = """\
    for (int64_t r = 0; r < s.m; ++r)
        for (int64_t c = 0; c < s.n; ++c) y[r * s.n + c] = std::max(y[r * s.n + c] + bias[c], 0.0f);
"""
PRAGMA = "#pragma omp parallel for num_threads({threads})\n"
BUFFER = "            std::vector<float> panel(DEPTH * COLS);\n"
FILL = "pack(w + col, panel.data(), s, first, last, std::min(COLS, s.n - col));\n"
CALLS = {
    "none": "add_block(x, w + first * s.n + col, s.n, y, s, row, col, first, last);\n",
    "panel": "add_block(x, panel.data(), COLS, y, s, row, col, first, last);\n",
    "once": "add_block(x, &panels[(first / DEPTH * across + col / COLS) * size], COLS, y, s, row,\n"
    "                          col, first, last);\n",
}


def write(knobs: Knobs) -> str:
    """Return the source of a program."""
    rounded, vectors = knobs["sums"] == "bfloat16", knobs["form"] == "vectors"
    packing, kept = str(knobs["packing"]), knobs["result"] == "kept"
    words = {**knobs, "packing": PACKING_WORDS[packing]}
    tile = TILES[str(knobs["form"])].replace("@", ROUND if rounded else "")
    parts = [
        HEADER.format(**words),
        VECTOR if vectors else "",
        ROUNDED if rounded else "",
        TILE_HEAD + tile,
        EDGE if knobs["tail"] == "guarded" else "",
        PACK if packing != "none" else "",
        BLOCK_HEAD + (BLOCK_EDGE if knobs["tail"] == "guarded" else "") + "}\n",
        MAIN_HEAD,
        KEPT_BEFORE if kept else "",
        ONCE if packing == "once" else "",
        _sums(knobs),
        LAST,
        KEPT_AFTER if kept else "",
        "    return 0;\n}\n",
    ]
    return "".join(parts)


def _sums(knobs: Knobs) -> str:
    """Return the loops over tiles, in the order of a program."""
    packing, by_rows = str(knobs["packing"]), knobs["order"] == "rows"
    panel = packing == "panel"
    inner = f"                {CALLS[packing]}"
    buffer = ""
    if panel:
        # With the rows outside every row of tiles packs all panels again.
        buffer = BUFFER if by_rows else f"{BUFFER}            {FILL}"
        inner = f"                {FILL}{inner}" if by_rows else inner
    names = ("row", "s.m", "ROWS", "col", "s.n", "COLS")
    outer = names if by_rows else names[3:] + names[:3]
    places = ("OUTER_END", "OUTER_STEP", "INNER_END", "INNER_STEP", "OUTER", "INNER")
    filled = (outer[1], outer[2], outer[4], outer[5], outer[0], outer[3])
    text = SUMS
    for place, value in zip(places, filled, strict=True):
        text = text.replace(place, value)
    threads = knobs["threads"]
    text = text.replace("PRAGMA", PRAGMA.format(threads=threads) if threads != 1 else "")
    return text.replace("BUFFER", buffer).replace("BODY", inner)


def allows(knobs: Knobs) -> bool:
    """Tell whether a combination is a program: at most one flaw, and a flaw in few surroundings."""
    flaws = [name for name, honest in HONEST.items() if knobs[name] != honest]
    flaws += ["packing"] if knobs["packing"] == "once" else []
    if knobs["depth"] != 256 and (knobs["form"] == "dots" or knobs["threads"] != 1):
        return False
    if knobs["form"] == "dots" and knobs["threads"] != 1:
        return False
    plain = {"form": "vectors", "threads": 1, "order": "columns", "depth": 256}
    return not flaws or (
        len(flaws) == 1 and all(knobs[name] == value for name, value in plain.items())
    )


SPACE = Space(
    name="cpp_matmul",
    tag="cpp",
    values={
        "rows": (1, 2, 4, 8),
        "cols": (16, 32, 64),
        "depth": (64, 256),
        "order": ("rows", "columns"),
        "packing": ("none", "panel", "once"),
        "form": ("dots", "loops", "vectors"),
        "threads": (1, 2),
        "sums": ("float", "bfloat16"),
        "tail": ("guarded", "ignored"),
        "result": ("computed", "kept"),
    },
    words={
        "rows": ("tile", "retile", "register", "block", "unroll"),
        "cols": ("tile", "retile", "register", "block", "unroll"),
        "depth": ("tile", "block", "cache"),
        "order": ("reorder", "loop order", "interchange"),
        "packing": ("pack", "reorder", "cache", "pipelin", "contiguous"),
        "form": ("vector", "simd", "unroll"),
        "threads": ("thread", "parallel", "openmp"),
        "sums": ("precision", "bfloat16", "accumulat"),
        "tail": ("tail", "mask", "guard", "edge"),
        "result": ("cache", "reuse", "fus"),
    },
    start={
        "rows": 1,
        "cols": 16,
        "depth": 256,
        "order": "rows",
        "packing": "none",
        "form": "dots",
        "threads": 1,
        **HONEST,
    },
    allows=allows,
    write=write,
)
