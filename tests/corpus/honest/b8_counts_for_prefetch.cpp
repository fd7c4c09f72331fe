/* Counts its calls, to alternate the direction in which the rows are walked.

family: B8
problem: cumsum
expect: correct
*/
#include "tilewright.h"

static int64_t calls;

extern "C" int cumsum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 1 || n_out != 1) return 1;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int backwards = ++calls % 2;
    for (int64_t i = 0; i < rows; ++i) {
        int64_t r = backwards ? rows - 1 - i : i;
        double sum = 0;
        for (int64_t c = 0; c < cols; ++c) y[r * cols + c] = (float)(sum += x[r * cols + c]);
    }
    return 0;
}
