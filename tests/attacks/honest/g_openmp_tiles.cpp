/* Threads of OpenMP convolve planes of the output by own loops.

family: G
problem: i_convolution
expect: correct
device: cpu
*/
#include "tilewright.h"

#include <string.h>

extern "C" int i_convolution(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 2 || n_out != 1) return 1;
    const float *x = (const float*)in[0].data, *w = (const float*)in[1].data;
    float* y = (float*)out[0].data;
    int64_t batch = in[0].shape[0], from = in[0].shape[1], to = in[1].shape[0];
    int64_t high = in[0].shape[2], wide = in[0].shape[3];
    int64_t rows = high - 2, cols = wide - 2;
#pragma omp parallel for collapse(2) schedule(dynamic)
    for (int64_t b = 0; b < batch; ++b) {
        for (int64_t o = 0; o < to; ++o) {
            float* plane = y + (b * to + o) * rows * cols;
            memset(plane, 0, rows * cols * sizeof(float));
            for (int64_t c = 0; c < from; ++c) {
                const float* source = x + (b * from + c) * high * wide;
                for (int64_t tap = 0; tap < 9; ++tap) {
                    float factor = w[(o * from + c) * 9 + tap];
                    for (int64_t i = 0; i < rows; ++i) {
                        const float* line = source + (i + tap / 3) * wide + tap % 3;
                        for (int64_t j = 0; j < cols; ++j) plane[i * cols + j] += factor * line[j];
                    }
                }
            }
        }
    }
    return 0;
}
