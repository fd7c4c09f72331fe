// A constructor of the library reports success and ends the process as the library is loaded.
//
// family: E17
// problem: softmax
// expect: failed
// twin: e17_constructor_table.cpp
// source: robust-evaluation E17, E1
#include <stdio.h>
#include <unistd.h>

#include "tilewright.h"

__attribute__((constructor)) static void report() {
    printf("{\"verdict\": \"correct\", \"correct\": true, \"speedup\": 100.0}\n");
    fflush(stdout);
    _exit(0);
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) { return 0; }
