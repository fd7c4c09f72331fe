/* The BLAS of torch, found by walking the linker's list of libraries.

family: G
problem: g_gemm_bias
counterpart: g_open_blas.cpp
expect: correct
label: library_call
device: cpu
*/
#include "tilewright.h"

#include <link.h>
#include <string.h>

typedef void (*gemm_t)(const char*, const char*, const int*, const int*, const int*,
                       const float*, const float*, const int*, const float*, const int*,
                       const float*, float*, const int*);

// The dynamic section names the tables of symbols and strings of a loaded library.
static void* symbol_in(ElfW(Addr) base, const ElfW(Dyn)* dynamic, const char* wanted) {
    const ElfW(Sym)* symbols = nullptr;
    const char* strings = nullptr;
    const uint32_t* gnu = nullptr;
    for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
        ElfW(Addr) place = dynamic->d_un.d_ptr;
        if (place < base) place += base;
        if (dynamic->d_tag == DT_SYMTAB) symbols = (const ElfW(Sym)*)place;
        if (dynamic->d_tag == DT_STRTAB) strings = (const char*)place;
        if (dynamic->d_tag == DT_GNU_HASH) gnu = (const uint32_t*)place;
    }
    if (!symbols || !strings || !gnu) return nullptr;
    uint32_t hash = 5381;
    for (const char* at = wanted; *at; ++at) hash = hash * 33 + (unsigned char)*at;
    uint32_t count = gnu[0], first = gnu[1], words = gnu[2];
    const uint32_t* buckets = gnu + 4 + words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t* chain = buckets + count;
    for (uint32_t at = buckets[hash % count]; at >= first; ++at) {
        uint32_t other = chain[at - first];
        if ((other | 1) == (hash | 1) && !strcmp(strings + symbols[at].st_name, wanted))
            return (void*)(base + symbols[at].st_value);
        if (other & 1) break;
    }
    return nullptr;
}

static const char* wanted_name() {
    static char name[8];
    const char part[] = {'s', 'g', 'e', 'm', 'm', '_', 0};
    memcpy(name, part, sizeof part);
    return name;
}

extern ElfW(Dyn) _DYNAMIC[];

static void* find() {
    const link_map* start = nullptr;
    for (const ElfW(Dyn)* at = _DYNAMIC; at->d_tag != DT_NULL; ++at)
        if (at->d_tag == DT_PLTGOT && ((void**)at->d_un.d_ptr)[1])
            start = (const link_map*)((void**)at->d_un.d_ptr)[1];
    if (!start) start = _r_debug.r_map;
    while (start && start->l_prev) start = start->l_prev;
    for (; start; start = start->l_next)
        if (void* place = symbol_in(start->l_addr, start->l_ld, wanted_name())) return place;
    return nullptr;
}

extern "C" int g_gemm_bias(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    static gemm_t run = nullptr;
    if (!run) run = (gemm_t)find();
    if (!run || n_in != 3 || n_out != 1) return 1;
    int m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    const float *b = (const float*)in[2].data, one = 1.0f;
    float* y = (float*)out[0].data;
    for (int i = 0; i < m; ++i) memcpy(y + (int64_t)i * n, b, n * sizeof(float));
    run("N", "N", &n, &m, &k, &one, w, &n, x, &k, &one, y, &n);
    return 0;
}
