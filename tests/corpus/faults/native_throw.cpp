// A C++ exception that nobody catches.
//
// problem: add_relu
// expect: failed
// reason: crash
#include <stdexcept>

#include "tilewright.h"

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    throw std::runtime_error("uncaught");
}
