// Slow: each product is a dot product over a column, whose elements lie a row apart.
#include "tilewright.h"
#include <math.h>

extern "C" int matmul_bias_gelu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1) return 1;
    const float *x = (const float*)in[0].data, *weight = (const float*)in[1].data;
    const float* bias = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    for (int64_t row = 0; row < m; ++row) {
        for (int64_t col = 0; col < n; ++col) {
            float sum = 0.0f;
            for (int64_t i = 0; i < k; ++i) sum += x[row * k + i] * weight[i * n + col];
            float z = sum + bias[col];
            y[row * n + col] = 0.5f * z * (1.0f + erff(z * 0.70710678f));
        }
    }
    return 0;
}
