// Each bag is summed into its output row, which stays in the first-level cache.
#include "tilewright.h"
#include <string.h>

extern "C" int embedding_sum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 2 || n_out != 1 || in[0].dtype != 7 || in[1].dtype != 0) return 1;
    const int64_t* indices = (const int64_t*)in[0].data;
    const float* table = (const float*)in[1].data;
    int64_t bags = in[0].shape[0], bag = in[0].shape[1];
    int64_t entries = in[1].shape[0], width = in[1].shape[1];
    int bad = 0;
#pragma omp parallel for schedule(static) reduction(| : bad)
    for (int64_t row = 0; row < bags; ++row) {
        float* y = (float*)out[0].data + row * width;
        memset(y, 0, width * sizeof(float));
        for (int64_t place = 0; place < bag; ++place) {
            int64_t entry = indices[row * bag + place];
            if (entry < 0 || entry >= entries) {
                bad = 2;
                break;
            }
            const float* x = table + entry * width;
#pragma omp simd
            for (int64_t c = 0; c < width; ++c) y[c] += x[c];
        }
    }
    return bad;
}
