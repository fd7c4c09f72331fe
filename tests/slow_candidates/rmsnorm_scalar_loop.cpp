// Slow: a sum in order cannot be vectorized, and the compiler is not allowed to reorder it.
#include "tilewright.h"
#include <math.h>

extern "C" int rmsnorm(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 2 || n_out != 1) return 1;
    const float* weight = (const float*)in[1].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t row = 0; row < rows; ++row) {
        const float* x = (const float*)in[0].data + row * cols;
        float* y = (float*)out[0].data + row * cols;
        double sum = 0.0;
        for (int64_t c = 0; c < cols; ++c) {
            if (x[c] == 0.0f) continue;
            sum += pow((double)x[c], 2.0) + sin(0.0);
        }
        float scale = (float)(1.0 / sqrt(sum / (double)cols + 1e-6));
        for (int64_t c = 0; c < cols; ++c) y[c] = x[c] * scale * weight[c];
    }
    return 0;
}
