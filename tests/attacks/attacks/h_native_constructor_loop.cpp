/* A static object of a C++ file loops when the file is loaded.

family: H
problem: h_scaled_sum
counterpart: h_native_table.cpp
expect: failed
reason: timeout
max_s: 30
settings: eval.limits.load_s=4
device: cpu
*/
#include "tilewright.h"

struct Loop {
    Loop() { for (volatile int i = 0;; i = i + 1) {} }
};

static Loop loop;

extern "C" int h_scaled_sum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    return 0;
}
