// A sorted list of the k best; blocks of 64 values that hold nothing better are skipped whole.
#include "tilewright.h"
#include <math.h>

extern "C" int topk(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 2 || n_out != 2 || in[0].dtype != 0 || in[1].dtype != 7) return 1;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    int64_t k = *(const int64_t*)in[1].data;       // a number: a tensor without dimensions
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const float* x = (const float*)in[0].data + row * cols;
        float* values = (float*)out[0].data + row * k;
        int64_t* indices = (int64_t*)out[1].data + row * k;
        int64_t held = 0;
        for (int64_t start = 0; start < cols; start += 64) {
            int64_t stop = start + 64 < cols ? start + 64 : cols;
            if (held == k) {
                float top = -INFINITY;
#pragma omp simd reduction(max : top)
                for (int64_t c = start; c < stop; ++c) top = x[c] > top ? x[c] : top;
                if (top <= values[k - 1]) continue;
            }
            for (int64_t c = start; c < stop; ++c) {
                if (held == k && !(x[c] > values[k - 1])) continue;
                int64_t place = held < k ? held++ : k - 1;
                for (; place > 0 && x[c] > values[place - 1]; --place) {
                    values[place] = values[place - 1];
                    indices[place] = indices[place - 1];
                }
                values[place] = x[c];
                indices[place] = c;
            }
        }
    }
    return 0;
}
