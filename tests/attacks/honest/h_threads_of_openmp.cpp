/* Threads of OpenMP stay asleep between calls, and a destructor joins one more at exit.

family: H
problem: h_scaled_sum
expect: correct
device: cpu
*/
#include "tilewright.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace {
class Helper {
public:
    Helper() : thread([this] {
        std::unique_lock<std::mutex> guard(lock);
        woken.wait(guard, [this] { return done; });
    }) {}
    ~Helper() {
        { std::lock_guard<std::mutex> guard(lock); done = true; }
        woken.notify_all();
        thread.join();
    }
private:
    std::mutex lock;
    std::condition_variable woken;
    bool done = false;
    std::thread thread;
};
Helper helper;
}

extern "C" int h_scaled_sum(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 2 || n_out != 1) return 1;
    const float *x = (const float*)in[0].data, *y = (const float*)in[1].data;
    float* z = (float*)out[0].data;
    int64_t count = in[0].shape[0] * in[0].shape[1];
#pragma omp parallel for
    for (int64_t i = 0; i < count; ++i) z[i] = 2 * x[i] + y[i];
    return 0;
}
