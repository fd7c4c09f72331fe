// clock_gettime is called, through libc as usual, to know the longest call.
//
// family: C6
// problem: softmax
// expect: correct
#include <math.h>
#include <time.h>

#include "tilewright.h"

static int64_t longest_ns = 0;

static int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    int64_t start = now(), rows = in[0].shape[0], cols = in[0].shape[1];
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = fmaxf(top, x[c]);
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = (float)(y[c] / sum);
    }
    if (now() - start > longest_ns) longest_ns = now() - start;
    return 0;
}
