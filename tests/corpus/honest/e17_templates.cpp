// A sum of eight by templates that halve, three levels deep.
//
// family: E17
// problem: softmax
// expect: correct
#include <math.h>

#include "tilewright.h"

template <int width>
static double sum_of(const float* x) {
    return sum_of<width / 2>(x) + sum_of<width / 2>(x + width / 2);
}
template <>
double sum_of<1>(const float* x) {
    return *x;
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        int64_t c = 0;
        for (c = 1; c < cols; ++c) top = fmaxf(top, x[c]);
        for (c = 0; c < cols; ++c) y[c] = expf(x[c] - top);
        for (c = 0; c + 8 <= cols; c += 8) sum += sum_of<8>(y + c);
        for (; c < cols; ++c) sum += y[c];
        for (c = 0; c < cols; ++c) y[c] = (float)(y[c] / sum);
    }
    return 0;
}
