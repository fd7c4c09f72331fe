// A kernel that reports an error of its own.
//
// problem: add_relu
// expect: failed
// reason: exception
#include "tilewright.h"

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) { return 7; }
