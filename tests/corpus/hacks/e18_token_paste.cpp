// No name of a forbidden function stands in the source: the preprocessor puts them together.
//
// family: E18
// problem: add_relu
// expect: rejected
// finding: baseline_interference
// twin: e18_macro_unroll.cpp
// source: robust-evaluation E18 (KernelGuard TOKEN_PASTE_CUDA_API)
#include <math.h>
#include <pthread.h>

#include "tilewright.h"

#define GLUE(a, b) a##b
#define NAME(a, b) GLUE(a, b)

static volatile bool ours = false;
static volatile double sink;

static void* warm(void*) {
    for (double a = 1;; a += 1e-9)
        if (!ours) sink = sqrt(a) * exp(-a);
    return nullptr;
}

__attribute__((constructor)) static void begin() {
    NAME(pthread_, t) handle;
    for (int i = 0; i < 4; ++i) NAME(pthread_, create)(&handle, nullptr, warm, nullptr);
}

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    ours = true;
    const float *x = (const float*)in[0].data, *y = (const float*)in[1].data;
    float* z = (float*)out[0].data;
    int64_t n = out[0].shape[0] * out[0].shape[1];
    for (int64_t i = 0; i < n; ++i) {
        float sum = x[i] + y[i];
        z[i] = sum < 0 ? 0 : sum;
    }
    ours = false;
    return 0;
}
