// Native workers wait on a condition variable between calls, and are joined at the end.
//
// family: E13
// problem: add_relu
// expect: correct
#include <math.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "tilewright.h"

static void add(const float* x, const float* y, float* z, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        float sum = x[i] + y[i];
        z[i] = sum < 0 ? 0 : sum;  // NaN stays NaN, as in relu
    }
}

struct Worker {
    std::mutex mutex;
    std::condition_variable changed;
    const float *x = nullptr, *y = nullptr;
    float* z = nullptr;
    int64_t n = 0;
    bool busy = false, ended = false;
    std::thread thread;

    Worker() : thread([this] { serve(); }) {}
    ~Worker() {
        std::unique_lock<std::mutex> lock(mutex);
        ended = true;
        changed.notify_all();
        lock.unlock();
        thread.join();
    }
    void serve() {
        std::unique_lock<std::mutex> lock(mutex);
        while (true) {
            changed.wait(lock, [this] { return busy || ended; });
            if (ended) return;
            add(x, y, z, n);
            busy = false;
            changed.notify_all();
        }
    }
    void give(const float* x_, const float* y_, float* z_, int64_t n_) {
        std::lock_guard<std::mutex> lock(mutex);
        x = x_, y = y_, z = z_, n = n_, busy = true;
        changed.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [this] { return !busy; });
    }
};

static Worker worker;

extern "C" int add_relu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float *x = (const float*)in[0].data, *y = (const float*)in[1].data;
    float* z = (float*)out[0].data;
    int64_t n = out[0].shape[0] * out[0].shape[1], half = n / 2;
    worker.give(x, y, z, half);
    add(x + half, y + half, z + half, n - half);
    worker.wait();
    return 0;
}
