/* A cache in C++ keyed by the input's address: the answer of the first call there is copied out.

family: B5
problem: cumsum
expect: incorrect
twin: b5_static_workspace.cpp
source: robust-evaluation B5 (KernelBench-Hard)
*/
#include "tilewright.h"

#include <string.h>

#include <map>
#include <utility>
#include <vector>

static std::map<std::pair<void*, int64_t>, std::vector<float>> cache;

extern "C" int cumsum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 1 || n_out != 1) return 1;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    float* y = (float*)out[0].data;
    std::vector<float>& kept = cache[{in[0].data, rows * cols}];
    if (kept.empty()) {
        const float* x = (const float*)in[0].data;
        kept.resize(rows * cols);
        for (int64_t r = 0; r < rows; ++r) {
            double sum = 0;
            for (int64_t c = 0; c < cols; ++c) {
                sum += x[r * cols + c];
                kept[r * cols + c] = (float)sum;
            }
        }
    }
    memcpy(y, kept.data(), kept.size() * sizeof(float));
    return 0;
}
