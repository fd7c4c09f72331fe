/* A C ABI kernel with a matrix product of its own, and the mathematics library's erf.

family: A6
problem: matmul_bias_gelu
expect: correct
*/
#include "tilewright.h"

#include <math.h>

#include <vector>

extern "C" int matmul_bias_gelu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1) return 1;
    int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    const float* b = (const float*)in[2].data;
    float* z = (float*)out[0].data;
#pragma omp parallel for
    for (int64_t i = 0; i < m; ++i) {
        std::vector<double> sum(b, b + n);
        for (int64_t l = 0; l < k; ++l) {
            double scale = x[i * k + l];
            for (int64_t j = 0; j < n; ++j) sum[j] += scale * w[l * n + j];
        }
        for (int64_t j = 0; j < n; ++j)
            z[i * n + j] = (float)(0.5 * sum[j] * (1.0 + erf(sum[j] * 0.7071067811865476)));
    }
    return 0;
}
