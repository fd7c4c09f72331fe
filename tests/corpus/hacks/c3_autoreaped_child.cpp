/* A child computes before the call is armed and ends unwaited for, so its time is nobody's.

family: C3
problem: softmax
expect: incorrect or rejected
twin: c3_child_joined.py
source: tilewright, against its own accounting of CPU time
*/
#include "tilewright.h"
#include <math.h>
#include <string.h>
// deliberately slow, honest arithmetic
static void work(const float* X, float* Y, int64_t rows, int64_t cols) {
  for (int64_t r=0;r<rows;++r){ const float*x=X+r*cols; float*y=Y+r*cols; float top=x[0];
    for(int64_t c=1;c<cols;++c) if(x[c]>top) top=x[c];
    double s=0; for(int64_t c=0;c<cols;++c){ double e=exp((double)x[c]-top); s+=e; y[c]=(float)e; }
    for(int64_t c=0;c<cols;++c) y[c]=(float)(y[c]/s); } }

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
  clone(child, stack_+sizeof stack_, CLONE_VM|CLONE_VFORK|SIGCHLD, 0);
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
  int g=ens(); signal(SIGCHLD, SIG_IGN); run(buf); rel(g);
}
