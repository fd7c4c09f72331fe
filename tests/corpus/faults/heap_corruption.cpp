/* A store past the end of its output, which the heap notices sooner or later.

problem: add_relu
expect: failed or incorrect
*/
#include "tilewright.h"

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float *x = (const float*)in[0].data, *y = (const float*)in[1].data;
    float* z = (float*)out[0].data;
    int64_t n = in[0].shape[0] * in[0].shape[1];
    for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i] > 0 ? x[i] + y[i] : 0;
    for (int64_t i = n; i < n + 4096; ++i) z[i] = -1.0f;
    return 0;
}
