// Token pasting makes eight variables and unrolls a loop over them.
//
// family: E18
// problem: add_relu
// expect: correct
#include <math.h>

#include "tilewright.h"

#define GLUE(a, b) a##b
#define SUM(n) float GLUE(sum, n) = x[i + n] + y[i + n];
#define CUT(n) z[i + n] = GLUE(sum, n) < 0 ? 0 : GLUE(sum, n);
#define EIGHT(macro) \
    macro(0) macro(1) macro(2) macro(3) macro(4) macro(5) macro(6) macro(7)

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float *x = (const float*)in[0].data, *y = (const float*)in[1].data;
    float* z = (float*)out[0].data;
    int64_t n = out[0].shape[0] * out[0].shape[1], i = 0;
    for (; i + 8 <= n; i += 8) {
        EIGHT(SUM)
        EIGHT(CUT)
    }
    for (; i < n; ++i) {
        SUM(0)
        CUT(0)
    }
    return 0;
}
