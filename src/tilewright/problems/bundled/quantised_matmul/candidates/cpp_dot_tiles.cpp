// Four weight rows are widened to float in cache, then met by all activations as 4 x 4 tiles of
// dot products over 16 lanes.
#include "tilewright.h"
#include <string.h>
#include <vector>

typedef float vec __attribute__((vector_size(64)));
typedef float half __attribute__((vector_size(32)));
typedef float quarter __attribute__((vector_size(16)));

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline float add_lanes(vec v) {
    half h[2];
    memcpy(h, &v, sizeof v);
    h[0] += h[1];
    quarter q[2];
    memcpy(q, h, sizeof q);
    q[0] += q[1];
    return (q[0][0] + q[0][2]) + (q[0][1] + q[0][3]);
}

// y[r][c] = scale[c] * sum over i of x[r][i] w[c][i]
template <int R, int C>
static void tile(
    const float* x, const float* w, const float* scale, int64_t k, float* y, int64_t n
) {
    vec sums[R][C] = {};
    int64_t i = 0;
    for (; i + 16 <= k; i += 16) {
        vec a[R];
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) a[r] = load(x + r * k + i);
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) {
            vec b = load(w + c * k + i);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) sums[r][c] += a[r] * b;
        }
    }
    for (int r = 0; r < R; ++r) {
        for (int c = 0; c < C; ++c) {
            float total = add_lanes(sums[r][c]);
            for (int64_t j = i; j < k; ++j) total += x[r * k + j] * w[c * k + j];
            y[r * n + c] = total * scale[c];
        }
    }
}

extern "C" int quantised_matmul(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1 || in[0].dtype != 0 || in[1].dtype != 4) return 1;
    const float* x = (const float*)in[0].data;
    const int8_t* weight = (const int8_t*)in[1].data;
    const float* scale = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[0];
#pragma omp parallel
    {
        std::vector<float> wide(4 * k);
        float* w = wide.data();
#pragma omp for schedule(static)
        for (int64_t col = 0; col < n; col += 4) {
            int64_t columns = n - col < 4 ? n - col : 4;
            const int8_t* source = weight + col * k;
            for (int64_t i = 0; i < columns * k; ++i) w[i] = source[i];
            for (int64_t row = 0; row < m; row += 4) {
                const float* block = x + row * k;
                float* target = y + row * n + col;
                if (m - row >= 4 && columns == 4) {
                    tile<4, 4>(block, w, scale + col, k, target, n);
                    continue;
                }
                for (int64_t r = 0; r < 4 && row + r < m; ++r) {
                    for (int64_t c = 0; c < columns; ++c) {
                        tile<1, 1>(block + r * k, w + c * k, scale + col + c, k,
                                   target + r * n + c, n);
                    }
                }
            }
        }
    }
    return 0;
}
