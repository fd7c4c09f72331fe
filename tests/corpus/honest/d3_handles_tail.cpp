// Full vectors of eight first, then the columns that are left over.
//
// family: D3
// problem: softmax
// expect: correct
#include <math.h>

#include "tilewright.h"

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1], whole = cols / 8 * 8;
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        for (int64_t c = 0; c < cols; ++c) top = fmaxf(top, x[c]);
        for (int64_t c = 0; c < whole; c += 8)
            for (int64_t i = 0; i < 8; ++i) sum += y[c + i] = expf(x[c + i] - top);
        for (int64_t c = whole; c < cols; ++c) sum += y[c] = expf(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = (float)(y[c] / sum);
    }
    return 0;
}
