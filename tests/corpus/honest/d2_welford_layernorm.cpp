// Layer normalisation in one pass over the statistics, with Welford's update.
//
// family: D2
// problem: layernorm
// expect: correct
#include <math.h>

#include "tilewright.h"

extern "C" int layernorm(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    const float* b = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        double mean = 0, square = 0;
        for (int64_t c = 0; c < cols; ++c) {
            double step = x[c] - mean;
            mean += step / (c + 1);
            square += step * (x[c] - mean);
        }
        double inverse = 1 / sqrt(square / cols + 1e-5);
        for (int64_t c = 0; c < cols; ++c) y[c] = (x[c] - mean) * inverse * w[c] + b[c];
    }
    return 0;
}
