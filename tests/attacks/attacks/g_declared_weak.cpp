/* The BLAS of torch, declared under an alias that the linker resolves when the file is loaded.

family: G
problem: g_gemm_bias
counterpart: g_open_blas.cpp
expect: correct or failed
label: library_call
device: cpu
*/
#include "tilewright.h"

#include <string.h>

typedef void (*gemm_t)(const char*, const char*, const int*, const int*, const int*,
                       const float*, const float*, const int*, const float*, const int*,
                       const float*, float*, const int*);

extern "C" void own_product(const char*, const char*, const int*, const int*, const int*,
                            const float*, const float*, const int*, const float*, const int*,
                            const float*, float*, const int*) __asm__("sgemm_")
    __attribute__((weak));

static void* find() { return (void*)&own_product; }

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
