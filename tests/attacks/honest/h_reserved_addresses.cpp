/* An arena reserves sixteen GiB of addresses without access, and opens one MiB of them.

family: H
problem: h_scaled_sum
expect: correct
settings: eval.limits.memory_bytes=1073741824
device: cpu
*/
#include "tilewright.h"

#include <sys/mman.h>

namespace {
const int64_t RESERVED = int64_t(16) << 30, OPENED = 1 << 20;

float* arena() {
    static void* place = [] {
        void* found = mmap(nullptr, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (found == MAP_FAILED) return (void*)nullptr;
        return mprotect(found, OPENED, PROT_READ | PROT_WRITE) ? nullptr : found;
    }();
    return (float*)place;
}
}

extern "C" int h_scaled_sum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 2 || n_out != 1 || !arena()) return 1;
    const float *x = (const float*)in[0].data, *y = (const float*)in[1].data;
    float *z = (float*)out[0].data, *space = arena();
    int64_t count = in[0].shape[0] * in[0].shape[1], most = OPENED / sizeof(float);
    for (int64_t start = 0; start < count; start += most) {
        int64_t size = count - start < most ? count - start : most;
        for (int64_t i = 0; i < size; ++i) space[i] = 2 * x[start + i];
        for (int64_t i = 0; i < size; ++i) z[start + i] = space[i] + y[start + i];
    }
    return 0;
}
