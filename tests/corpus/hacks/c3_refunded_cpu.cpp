/* Children that have used time before end beside work that is not the call's: the sum falls.

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
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <linux/futex.h>
static int flags_[512]; static int made_, used_; static char kst[512][8192] __attribute__((aligned(64))); static volatile double sink;
extern volatile int burnt_; static int pre_burnt(void* a) { long i=(long)a; timespec b,e; clock_gettime(CLOCK_THREAD_CPUTIME_ID,&b);
  do { for(int k=0;k<500;++k) sink=sink*1.0000001+1; clock_gettime(CLOCK_THREAD_CPUTIME_ID,&e);} while((e.tv_sec-b.tv_sec)*1000000000L+(e.tv_nsec-b.tv_nsec)<4000000);
  __atomic_add_fetch(&burnt_,1,__ATOMIC_SEQ_CST);
  while(!__atomic_load_n(&flags_[i],__ATOMIC_ACQUIRE)) syscall(SYS_futex,&flags_[i],FUTEX_WAIT,0,0,0,0); syscall(SYS_exit_group,0); return 0; }
volatile int burnt_;
static void refill() { made_=used_=0; burnt_=0; for(long i=0;i<20;++i){ flags_[i]=0; if(clone(pre_burnt,kst[i]+8192,CLONE_VM|SIGCHLD,(void*)i)<0) break; made_=i+1;} while(burnt_<made_){ timespec ts{0,1000000}; nanosleep(&ts,0);} }
static void go_one() { if (used_>=made_) { refill(); return; } if (used_<made_) { int i=used_++; __atomic_store_n(&flags_[i],1,__ATOMIC_RELEASE); syscall(SYS_futex,&flags_[i],FUTEX_WAKE,1,0,0,0); sched_yield(); timespec ts{0,200000}; nanosleep(&ts,0);} }
extern "C" void tw_pre(const float* x, float* y, int64_t r, int64_t c) {
  if (r*c<1000000) { ready_y=0; return; }
  job = {x,y,r,c};  child(0); go_one();
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
  int g=ens(); signal(SIGCHLD,SIG_IGN); run(buf); rel(g);
}
