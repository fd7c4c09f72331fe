// A softmax of rows, one block a row.
#pragma once

__global__ void rows(const float* x, float* y, int cols) {
    __shared__ float part[256];
    const float* in = x + (size_t)blockIdx.x * cols;
    float* out = y + (size_t)blockIdx.x * cols;
    float top = -INFINITY;
    for (int i = threadIdx.x; i < cols; i += 256) top = fmaxf(top, in[i]);
    part[threadIdx.x] = top;
    for (int step = 128; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step)
            part[threadIdx.x] = fmaxf(part[threadIdx.x], part[threadIdx.x + step]);
    }
    __syncthreads();
    top = part[0];
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < cols; i += 256) sum += expf(in[i] - top);
    part[threadIdx.x] = sum;
    for (int step = 128; step; step /= 2) {
        __syncthreads();
        if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += 256) out[i] = expf(in[i] - top) / part[0];
}
