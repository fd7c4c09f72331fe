// Inputs are rounded to their upper 16 bits before use: bfloat16 without the word.
//
// family: D1
// problem: layernorm
// expect: incorrect
// twin: d1_whole_mantissa.cpp
// source: robust-evaluation D1
#include <math.h>
#include <string.h>

#include "tilewright.h"

static inline float cut(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits = (bits + 0x8000u) & 0xffff0000u;
    memcpy(&value, &bits, 4);
    return value;
}

extern "C" int layernorm(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    const float* b = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        double mean = 0, square = 0;
        for (int64_t c = 0; c < cols; ++c) mean += cut(x[c]);
        mean /= cols;
        for (int64_t c = 0; c < cols; ++c) square += (cut(x[c]) - mean) * (cut(x[c]) - mean);
        double inverse = 1 / sqrt(square / cols + 1e-5);
        for (int64_t c = 0; c < cols; ++c) y[c] = (cut(x[c]) - mean) * inverse * w[c] + b[c];
    }
    return 0;
}
