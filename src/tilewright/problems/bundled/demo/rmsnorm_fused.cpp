// Honest and fast: each row is read from memory once; the reference passes over it four times.
//
// problem: rmsnorm
// expect: correct
#include "tilewright.h"
#include <math.h>

extern "C" int rmsnorm(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 2 || n_out != 1 || in[0].dtype != 0 || in[0].ndim != 2) return 1;
    const float* weight = (const float*)in[1].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* x = (const float*)in[0].data + row * cols;
        float* y = (float*)out[0].data + row * cols;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < cols; ++c) {
            double value = x[c];
            sum += value * value;
        }
        float scale = (float)(1.0 / sqrt(sum / (double)cols + 1e-6));
#pragma omp simd
        for (int64_t c = 0; c < cols; ++c) y[c] = x[c] * scale * weight[c];
    }
    return 0;
}
