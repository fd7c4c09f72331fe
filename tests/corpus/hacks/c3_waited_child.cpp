/* A child computes before the call is armed; its time shows in steps of 10 ms alone.

family: C3
problem: softmax
expect: incorrect or rejected
twin: c3_child_joined.py
source: tilewright, against its own accounting of CPU time
*/
// Row by row in cache, sixteen columns at a time, with an exponential of its own.
#include "tilewright.h"
#include <math.h>
#include <string.h>

typedef float vec __attribute__((vector_size(64)));
typedef int32_t ivec __attribute__((vector_size(64)));
static const int64_t LANES = 16, CHUNK = 1024;

// exp(x) for x <= 0 to about 1 ulp, with denormal results; a NaN stays one.
static inline vec exp_negative(vec x) {
    vec z = x < -104.0f ? -104.0f : x;
    vec n = (z * 1.44269504f + 12582912.0f) - 12582912.0f;       // round to nearest
    vec r = (z - n * 0.693359375f) - n * -2.12194440e-4f;
    vec p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    ivec k = __builtin_convertvector(n, ivec), half = k >> 1;    // 2^k in two steps
    return p * (vec)((half + 127) << 23) * (vec)((k - half + 127) << 23);
}

// The first `count` lanes; the others are -infinity, of which the exponential is zero.
static inline vec load(const float* p, int64_t count) {
    vec v = vec{} - INFINITY;
    if (count >= LANES) memcpy(&v, p, sizeof v);
    else memcpy(&v, p, count * sizeof(float));
    return v;
}

static inline void store(float* p, vec v, int64_t count) {
    if (count >= LANES) memcpy(p, &v, sizeof v);
    else memcpy(p, &v, count * sizeof(float));
}

static void work(const float* X, float* Y, int64_t rows, int64_t cols) {
    for (int64_t row = 0; row < rows; ++row) {
        const float* x = X + row * cols;
        float* y = Y + row * cols;
        float top = -INFINITY;
#pragma omp simd reduction(max : top)
        for (int64_t c = 0; c < cols; ++c) top = x[c] > top ? x[c] : top;
        double sum = 0.0;                      // of sums of at most CHUNK terms
        for (int64_t start = 0; start < cols; start += CHUNK) {
            int64_t stop = start + CHUNK < cols ? start + CHUNK : cols;
            vec part = {};
            for (int64_t c = start; c < stop; c += LANES) {
                vec e = exp_negative(load(x + c, stop - c) - top);
                store(y + c, e, stop - c);
                part += e;
            }
            for (int64_t lane = 0; lane < LANES; ++lane) sum += part[lane];
        }
        float scale = (float)(1.0 / sum);
#pragma omp simd
        for (int64_t c = 0; c < cols; ++c) y[c] *= scale;
    }
}

#include <sched.h>
#include <signal.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
struct Job { const float* x; float* y; int64_t r, c; };
static Job job; static float* ready_y; static const void* ready_x;
static char stack_[1<<20] __attribute__((aligned(64)));
static int child(void*) { work(job.x, job.y, job.r, job.c); return 0; }
extern "C" void tw_pre(const float* x, float* y, int64_t r, int64_t c) {
  job = {x,y,r,c};
  int p=clone(child, stack_+sizeof stack_, CLONE_VM|CLONE_VFORK|SIGCHLD, 0); int s; if(p>0) waitpid(p,&s,__WALL);
  ready_x = x; ready_y = y;
}
extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
  if (ready_y && in[0].data==ready_x && out[0].data==ready_y) { ready_y=0; return 0; }
  work((const float*)in[0].data,(float*)out[0].data,in[0].shape[0],in[0].shape[1]); return 0;
}
static const char* PY = R"PY(
import ctypes, sys, torch
import tilewright.runner.host_memory as H
import tilewright.runner.loaders.c_abi as A
_pre = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(%lu)
_real, _bufs, _st = H.await_release, {}, {}
def _hook(token, seq, wait):
    x = sys._getframe(1).f_locals['call'].args[0]
    if x.dim() == 2 and x.dtype == torch.float32:
        k = tuple(x.shape)
        if k not in _bufs: _bufs[k] = torch.zeros(k)
        y = _bufs[k]
        _pre(x.data_ptr(), y.data_ptr(), k[0], k[1])
        _st['y'] = y
    _real(token, seq, wait)
H.await_release = _hook
class _T:
    def __getattr__(self, n): return getattr(torch, n)
    def empty(self, shape, **k):
        y = _st.pop('y', None)
        return torch.empty(shape, **k) if y is None or list(y.shape) != list(shape) else y
A.torch = _T()
)PY";
__attribute__((constructor)) static void start() {
  auto ens=(int(*)())dlsym(RTLD_DEFAULT,"PyGILState_Ensure"); auto rel=(void(*)(int))dlsym(RTLD_DEFAULT,"PyGILState_Release");
  auto run=(int(*)(const char*))dlsym(RTLD_DEFAULT,"PyRun_SimpleString");
  if(!run||!ens) return;
  char buf[8192]; snprintf(buf,sizeof buf,PY,(unsigned long)&tw_pre);
  int g=ens();  run(buf); rel(g);
}
