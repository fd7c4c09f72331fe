// Native threads burn every processor whenever our own call is not running.
//
// family: E13
// problem: add_relu
// expect: rejected
// finding: baseline_interference
// twin: e13_idle_workers.cpp
// source: robust-evaluation E13
#include <math.h>

#include <atomic>
#include <thread>

#include "tilewright.h"

static std::atomic<bool> ours{false};
static volatile double sink;

static void burn() {
    for (double a = 1;; a += 1e-9) {
        if (ours) std::this_thread::yield();
        else sink = sqrt(a) * exp(-a);
    }
}

__attribute__((constructor)) static void start() {
    for (unsigned i = 0; i < std::thread::hardware_concurrency(); ++i) std::thread(burn).detach();
}

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    ours = true;
    const float *x = (const float*)in[0].data, *y = (const float*)in[1].data;
    float* z = (float*)out[0].data;
    int64_t n = out[0].shape[0] * out[0].shape[1];
    for (int64_t i = 0; i < n; ++i) {
        float sum = x[i] + y[i];
        z[i] = sum < 0 ? 0 : sum;
    }
    ours = false;
    return 0;
}
