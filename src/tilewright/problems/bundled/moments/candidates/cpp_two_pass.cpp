// Sum and maximum in one pass, the variance about the mean in a second one from cache.
#include "tilewright.h"
#include <math.h>

extern "C" int moments(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 1 || n_out != 3 || in[0].dtype != 0 || in[0].ndim != 2) return 1;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* x = (const float*)in[0].data + row * cols;
        double sum = 0.0, squares = 0.0;
        float top = -INFINITY;
        int32_t nans = 0;
#pragma omp simd reduction(+ : sum) reduction(max : top) reduction(| : nans)
        for (int64_t c = 0; c < cols; ++c) {
            sum += x[c];
            top = x[c] > top ? x[c] : top;
            nans |= x[c] != x[c];
        }
        double mean = sum / (double)cols;
#pragma omp simd reduction(+ : squares)
        for (int64_t c = 0; c < cols; ++c) {
            double centred = x[c] - mean;
            squares += centred * centred;
        }
        ((float*)out[0].data)[row] = (float)mean;
        ((float*)out[1].data)[row] = (float)(squares / (double)cols);
        ((float*)out[2].data)[row] = nans ? NAN : top;   // a NaN wins, as in amax
    }
    return 0;
}
