// Native threads share the rows and are joined before the kernel returns.
//
// family: C2
// problem: softmax
// expect: correct
#include <math.h>

#include <thread>

#include "tilewright.h"

static void rows_of(const float* x, float* y, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = fmaxf(top, x[c]);
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = (float)(y[c] / sum);
    }
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1], half = rows / 2;
    std::thread first(rows_of, x, y, half, cols);
    rows_of(x + half * cols, y + half * cols, rows - half, cols);
    first.join();
    return 0;
}
