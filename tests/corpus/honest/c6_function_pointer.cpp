// The row function is chosen once, through a pointer, as an ifunc resolver would choose it.
//
// family: C6
// problem: softmax
// expect: correct
#include <math.h>

#include "tilewright.h"

typedef void (*row_function)(const float*, float*, int64_t);

template <typename sum_t>
static void row(const float* x, float* y, int64_t cols) {
    float top = x[0];
    sum_t sum = 0;
    for (int64_t c = 1; c < cols; ++c) top = fmaxf(top, x[c]);
    for (int64_t c = 0; c < cols; ++c) sum += y[c] = expf(x[c] - top);
    for (int64_t c = 0; c < cols; ++c) y[c] = (float)(y[c] / sum);
}

static row_function pointer_to_row = nullptr;

__attribute__((constructor)) static void resolve() {
    pointer_to_row = __builtin_cpu_supports("avx2") ? row<double> : row<long double>;
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r)
        pointer_to_row((const float*)in[0].data + r * cols, (float*)out[0].data + r * cols, cols);
    return 0;
}
