// A file of the build host is included, so that the compiler's message shows what is in it.
//
// family: E17
// problem: softmax
// expect: failed
// twin: e17_includes.cpp
// source: robust-evaluation E17
#include "/etc/hostname"
#include "/etc/passwd"
#include "tilewright.h"

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) { return 0; }
