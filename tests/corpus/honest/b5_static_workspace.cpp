/* A static workspace in C++: memory is kept between calls, its contents are not.

family: B5
problem: cumsum
expect: correct
*/
#include "tilewright.h"

#include <string.h>

#include <vector>

static std::vector<double> workspace;

extern "C" int cumsum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 1 || n_out != 1) return 1;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    if ((int64_t)workspace.size() < cols) workspace.resize(cols);
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < cols; ++c) workspace[c] = sum += x[r * cols + c];
        for (int64_t c = 0; c < cols; ++c) y[r * cols + c] = (float)workspace[c];
    }
    return 0;
}
