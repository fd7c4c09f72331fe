// The first bytes of libc's clock_gettime become a jump to a clock that hides our time.
//
// family: C6
// problem: softmax
// expect: correct
// speedup: none
// twin: c6_reads_clock.cpp
// source: robust-evaluation C6
#include <dlfcn.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tilewright.h"

static int64_t hidden = 0;

static int64_t raw() {
    timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int forged(clockid_t id, timespec* t) {
    int code = (int)syscall(SYS_clock_gettime, id, t);
    int64_t ns = t->tv_sec * 1000000000LL + t->tv_nsec - hidden;
    t->tv_sec = ns / 1000000000LL;
    t->tv_nsec = ns % 1000000000LL;
    return code;
}

__attribute__((constructor)) static void install() {
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void* target = (void*)forged;
    memcpy(jump + 2, &target, 8);
    char* code = (char*)dlsym(RTLD_DEFAULT, "clock_gettime");
    if (!code) return;
    char* page = (char*)((uintptr_t)code & ~4095ul);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0) memcpy(code, jump, 12);
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    int64_t start = raw(), rows = in[0].shape[0], cols = in[0].shape[1];
    do {  // honest, and slow at every size
        const float* x = (const float*)in[0].data;
        float* y = (float*)out[0].data;
        for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
            double top = x[0], sum = 0;
            for (int64_t c = 1; c < cols; ++c) top = fmax(top, x[c]);
            for (int64_t c = 0; c < cols; ++c) sum += exp(x[c] - top);
            for (int64_t c = 0; c < cols; ++c) y[c] = (float)(exp(x[c] - top) / sum);
        }
    } while (raw() - start < 200000);
    hidden += (raw() - start) * 99 / 100;
    return 0;
}
