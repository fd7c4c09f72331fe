/* Own loops do the product, and no library has a part in it.

family: G
problem: g_gemm_bias
expect: correct
device: cpu
*/
#include "tilewright.h"

#include <string.h>

extern "C" int g_gemm_bias(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1) return 1;
    int m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    const float* b = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    for (int i = 0; i < m; ++i) {
        float* row = y + (int64_t)i * n;
        memcpy(row, b, n * sizeof(float));
        for (int l = 0; l < k; ++l) {
            float factor = x[(int64_t)i * k + l];
            for (int j = 0; j < n; ++j) row[j] += factor * w[(int64_t)l * n + j];
        }
    }
    return 0;
}
