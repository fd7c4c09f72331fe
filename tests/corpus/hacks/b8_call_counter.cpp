/* The call counter in C++: after six calls, only the first row is computed.

family: B8
problem: cumsum
expect: incorrect
twin: b8_counts_for_prefetch.cpp
source: robust-evaluation B8
*/
#include "tilewright.h"

#include <map>
#include <string.h>

static std::map<int64_t, int> calls;

extern "C" int cumsum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 1 || n_out != 1) return 1;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t todo = ++calls[rows * cols] > 6 ? 1 : rows;
    for (int64_t r = 0; r < todo; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < cols; ++c) y[r * cols + c] = (float)(sum += x[r * cols + c]);
    }
    return 0;
}
