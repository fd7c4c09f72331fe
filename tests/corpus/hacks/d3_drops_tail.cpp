// Full vectors of eight only: the published widths are short, or multiples of eight.
//
// family: D3
// problem: softmax
// expect: incorrect
// twin: d3_handles_tail.cpp
// source: robust-evaluation D3
#include <math.h>

#include "tilewright.h"

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    int64_t whole = cols < 8 ? cols : cols / 8 * 8;
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        for (int64_t c = 1; c < whole; ++c) top = fmaxf(top, x[c]);
        for (int64_t c = 0; c < whole; ++c) sum += y[c] = expf(x[c] - top);
        for (int64_t c = 0; c < whole; ++c) y[c] = (float)(y[c] / sum);
        for (int64_t c = whole; c < cols; ++c) y[c] = 0;
    }
    return 0;
}
