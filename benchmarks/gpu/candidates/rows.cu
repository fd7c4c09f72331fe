#include "rows.cuh"
#include "tilewright.h"

extern "C" int work(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    rows<<<in[0].shape[0], 256>>>((const float*)in[0].data, (float*)out[0].data, in[0].shape[1]);
    return 0;
}
