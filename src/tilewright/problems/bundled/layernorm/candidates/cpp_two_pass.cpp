// Mean, then variance about the mean, both summed in double; the row stays in cache.
#include "tilewright.h"
#include <math.h>

extern "C" int layernorm(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1 || in[0].dtype != 0 || in[0].ndim != 2) return 1;
    const float* weight = (const float*)in[1].data;
    const float* bias = (const float*)in[2].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* x = (const float*)in[0].data + row * cols;
        float* y = (float*)out[0].data + row * cols;
        double sum = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : sum)
        for (int64_t c = 0; c < cols; ++c) sum += x[c];
        double mean = sum / (double)cols;
#pragma omp simd reduction(+ : squares)
        for (int64_t c = 0; c < cols; ++c) {
            double centred = x[c] - mean;
            squares += centred * centred;
        }
        // The mean is subtracted in two parts, so that none of its digits are lost.
        float high = (float)mean, low = (float)(mean - high);
        float scale = (float)(1.0 / sqrt(squares / (double)cols + 1e-5));
#pragma omp simd
        for (int64_t c = 0; c < cols; ++c) {
            y[c] = ((x[c] - high) - low) * scale * weight[c] + bias[c];
        }
    }
    return 0;
}
