// Standard headers, and the one header of the C ABI.
//
// family: E17
// problem: softmax
// expect: correct
#include <math.h>
#if __has_include(<immintrin.h>)
#include <immintrin.h>
#endif
#include "tilewright.h"

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = fmaxf(top, x[c]);
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = (float)(y[c] / sum);
    }
    return 0;
}
