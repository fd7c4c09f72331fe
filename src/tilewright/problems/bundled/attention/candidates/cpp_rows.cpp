// Keys are transposed once a head; then each query makes its scores, weights and output in cache.
#include "tilewright.h"
#include <math.h>
#include <string.h>
#include <vector>

typedef float vec __attribute__((vector_size(64)));
typedef int32_t ivec __attribute__((vector_size(64)));
static const int64_t LANES = 16;

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

extern "C" int attention(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1 || in[0].dtype != 0 || in[0].ndim != 4) return 1;
    int64_t heads = in[0].shape[0] * in[0].shape[1];
    int64_t steps = in[0].shape[2], width = in[0].shape[3];
    float scale = (float)(1.0 / sqrt((double)width));
#pragma omp parallel
    {
        std::vector<float> keys(width * steps), weights(steps + LANES), sums(width);
#pragma omp for schedule(static)
        for (int64_t head = 0; head < heads; ++head) {
            const float* q = (const float*)in[0].data + head * steps * width;
            const float* k = (const float*)in[1].data + head * steps * width;
            const float* v = (const float*)in[2].data + head * steps * width;
            float* y = (float*)out[0].data + head * steps * width;
            float *kt = keys.data(), *w = weights.data(), *total = sums.data();
            for (int64_t t = 0; t < steps; ++t) {
                for (int64_t d = 0; d < width; ++d) kt[d * steps + t] = k[t * width + d];
            }
            for (int64_t i = 0; i < steps; ++i) {
                for (int64_t t = 0; t <= i; ++t) w[t] = 0.0f;
                for (int64_t d = 0; d < width; ++d) {
                    float value = q[i * width + d];
#pragma omp simd
                    for (int64_t t = 0; t <= i; ++t) w[t] += value * kt[d * steps + t];
                }
                float top = -INFINITY;
#pragma omp simd reduction(max : top)
                for (int64_t t = 0; t <= i; ++t) top = w[t] > top ? w[t] : top;
                double sum = 0.0;
                for (int64_t t = i + 1; t % LANES; ++t) w[t] = -INFINITY;
                for (int64_t t = 0; t <= i; t += LANES) {
                    vec e;
                    memcpy(&e, w + t, sizeof e);
                    e = exp_negative((e - top) * scale);
                    memcpy(w + t, &e, sizeof e);
                    for (int64_t lane = 0; lane < LANES; ++lane) sum += e[lane];
                }
                for (int64_t d = 0; d < width; ++d) total[d] = 0.0f;
                for (int64_t t = 0; t <= i; ++t) {
                    float weight = w[t];
#pragma omp simd
                    for (int64_t d = 0; d < width; ++d) total[d] += weight * v[t * width + d];
                }
                float inverse = (float)(1.0 / sum);
                for (int64_t d = 0; d < width; ++d) y[i * width + d] = total[d] * inverse;
            }
        }
    }
    return 0;
}
