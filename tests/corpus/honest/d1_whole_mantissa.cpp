// Inputs keep all their bits; memcpy reads a sign bit, and no value is cut.
//
// family: D1
// problem: layernorm
// expect: correct
#include <math.h>
#include <string.h>

#include "tilewright.h"

static inline float kept(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    bits = bits == 0x80000000u ? 0 : bits;  // minus zero becomes zero
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
        for (int64_t c = 0; c < cols; ++c) mean += kept(x[c]);
        mean /= cols;
        for (int64_t c = 0; c < cols; ++c) square += (kept(x[c]) - mean) * (kept(x[c]) - mean);
        double inverse = 1 / sqrt(square / cols + 1e-5);
        for (int64_t c = 0; c < cols; ++c) y[c] = (kept(x[c]) - mean) * inverse * w[c] + b[c];
    }
    return 0;
}
