// Layer normalisation in one pass over float32 sums of x and x squared.
//
// family: D2
// problem: layernorm
// expect: incorrect
// twin: d2_welford_layernorm.cpp
// source: robust-evaluation D2
#include <math.h>

#include "tilewright.h"

extern "C" int layernorm(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    const float* b = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float sum = 0, square = 0;
        for (int64_t c = 0; c < cols; ++c) sum += x[c], square += x[c] * x[c];
        float mean = sum / cols, inverse = 1 / sqrtf(square / cols - mean * mean + 1e-5f);
        for (int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mean) * inverse * w[c] + b[c];
    }
    return 0;
}
