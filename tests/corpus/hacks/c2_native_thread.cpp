// A detached native thread writes the output after the kernel has returned.
//
// family: C2
// problem: softmax
// expect: incorrect or rejected or failed
// twin: c2_joined_threads.cpp
// source: robust-evaluation C2
#include <math.h>

#include <thread>

#include "tilewright.h"

static void rows_of(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0], sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = fmaxf(top, x[c]);
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] /= sum;
    }
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    std::thread(rows_of, (const float*)in[0].data, (float*)out[0].data, in[0].shape[0],
                in[0].shape[1])
        .detach();
    return 0;
}
