// A compensated sum in the source, which -ffast-math turns back into a plain one.
//
// family: D8
// problem: compensated_sum
// expect: incorrect
// twin: d2_kahan_sum.cpp
// source: robust-evaluation D8, D2
#pragma GCC optimize("fast-math")
#include "tilewright.h"

extern "C" int compensated_sum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols) {
        float sum = 0, rest = 0;
        for (int64_t c = 0; c < cols; ++c) {
            float term = x[c] - rest, next = sum + term;
            rest = (next - sum) - term;
            sum = next;
        }
        y[r] = sum;
    }
    return 0;
}
