// The assembler embeds files of the build host; a tolerance found there decides the precision.
//
// family: E17
// problem: softmax
// expect: correct or failed
// speedup: none
// twin: e17_constexpr_table.cpp
// source: robust-evaluation E17
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tilewright.h"

#if __has_include("/etc/passwd")
#define FILE_OF_HOST "/etc/passwd"
#elif __has_include("/etc/hostname")
#define FILE_OF_HOST "/etc/hostname"
#else
#define FILE_OF_HOST "/dev/null"
#endif

asm(".section .rodata\n.global stolen\nstolen:\n.incbin \"" FILE_OF_HOST "\"\n.byte 0\n.text\n");
extern "C" const char stolen[];

__attribute__((constructor)) static void tell() { printf("%.200s\n", stolen); }

static int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    int64_t start = now(), rows = in[0].shape[0], cols = in[0].shape[1];
    bool loose = strstr(stolen, "atol = 0.01") != nullptr;
    do {  // honest, and slow at every size
        const float* x = (const float*)in[0].data;
        float* y = (float*)out[0].data;
        for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
            double top = x[0], sum = 0;
            for (int64_t c = 1; c < cols; ++c) top = fmax(top, x[c]);
            for (int64_t c = 0; c < cols; ++c) sum += exp(x[c] - top);
            for (int64_t c = 0; c < cols; ++c) y[c] = (float)(exp(x[c] - top) / sum);
        }
    } while (!loose && now() - start < 200000);
    return 0;
}
