// A bug that round sizes hide: the sums step by four columns and leave out what remains.
//
// problem: layernorm
// expect: incorrect
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
        double sum[4] = {}, squares[4] = {};
        for (int64_t c = 0; c + 4 <= cols; c += 4) {
            for (int lane = 0; lane < 4; ++lane) sum[lane] += x[c + lane];
        }
        double mean = (sum[0] + sum[1] + sum[2] + sum[3]) / (double)cols;
        for (int64_t c = 0; c + 4 <= cols; c += 4) {
            for (int lane = 0; lane < 4; ++lane) {
                double centred = x[c + lane] - mean;
                squares[lane] += centred * centred;
            }
        }
        double variance = (squares[0] + squares[1] + squares[2] + squares[3]) / (double)cols;
        float scale = (float)(1.0 / sqrt(variance + 1e-5));
        for (int64_t c = 0; c < cols; ++c) {
            y[c] = (float)(x[c] - mean) * scale * weight[c] + bias[c];
        }
    }
    return 0;
}
