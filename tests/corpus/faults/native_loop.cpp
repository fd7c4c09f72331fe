// An endless native loop, entered with the interpreter's lock held.
//
// problem: add_relu
// expect: failed
// reason: timeout
#include "tilewright.h"

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    for (volatile bool for_ever = true; for_ever;) {
    }
    return 0;
}
