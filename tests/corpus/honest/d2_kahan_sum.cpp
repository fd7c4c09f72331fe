// A compensated sum (Neumaier), compiled as it is written.
//
// family: D2
// problem: compensated_sum
// expect: correct
#include <math.h>

#include "tilewright.h"

extern "C" int compensated_sum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols) {
        float sum = 0, rest = 0;
        for (int64_t c = 0; c < cols; ++c) {
            float next = sum + x[c];
            rest += fabsf(sum) >= fabsf(x[c]) ? (sum - next) + x[c] : (x[c] - next) + sum;
            sum = next;
        }
        y[r] = sum + rest;
    }
    return 0;
}
