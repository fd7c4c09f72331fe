/* Library laundering: a C ABI kernel that finds the BLAS inside libtorch and calls it.

family: A6
problem: matmul_bias_gelu
expect: correct
label: library_call
twin: a6_own_matmul.cpp
source: robust-evaluation A6
*/
#include "tilewright.h"

#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <string.h>

typedef void (*sgemm_t)(const char*, const char*, const int*, const int*, const int*,
                        const float*, const float*, const int*, const float*, const int*,
                        const float*, float*, const int*);

static int look(struct dl_phdr_info* info, size_t, void* found) {
    if (!strstr(info->dlpi_name, "libtorch_cpu")) return 0;
    void* library = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
    *(void**)found = library ? dlsym(library, "sgemm_") : nullptr;
    return 1;
}

extern "C" int matmul_bias_gelu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    static void* found = nullptr;
    if (!found) dl_iterate_phdr(look, &found);
    if (!found || n_in != 3 || n_out != 1) return 1;
    int m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    const float *b = (const float*)in[2].data, one = 1.0f;
    float* z = (float*)out[0].data;
    for (int i = 0; i < m; ++i) memcpy(z + (int64_t)i * n, b, n * sizeof(float));
    ((sgemm_t)found)("N", "N", &n, &m, &k, &one, w, &n, x, &k, &one, z, &n);
    for (int64_t i = 0; i < (int64_t)m * n; ++i)
        z[i] = 0.5f * z[i] * (1.0f + erff(z[i] * 0.70710678f));
    return 0;
}
