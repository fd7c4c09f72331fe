// Panels of 32 columns are packed, tiles of 6 x 32 stay in registers, the epilogue is fused.
#include "tilewright.h"
#include <math.h>
#include <string.h>
#include <vector>

typedef float vec __attribute__((vector_size(64)));
typedef int32_t ivec __attribute__((vector_size(64)));
static const int LANES = 16, WIDTH = 32, CHUNK = 256;

static inline vec load(const float* p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

// y[R][32] = x[R][k] panel[k][32]; a long sum is made of sums of at most CHUNK terms.
template <int R>
static void tile(const float* x, const float* panel, int64_t k, float* y) {
    vec total[R][2] = {};
    for (int64_t start = 0; start < k; start += CHUNK) {
        int64_t stop = start + CHUNK < k ? start + CHUNK : k;
        vec part[R][2] = {};
        for (int64_t i = start; i < stop; ++i) {
            vec w0 = load(panel + i * WIDTH), w1 = load(panel + i * WIDTH + 16);
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r) {
                part[r][0] += x[r * k + i] * w0;
                part[r][1] += x[r * k + i] * w1;
            }
        }
        for (int r = 0; r < R; ++r) total[r][0] += part[r][0], total[r][1] += part[r][1];
    }
    memcpy(y, total, sizeof total);
}

// exp(x) for -87 <= x <= 0
static inline vec exp_negative(vec x) {
    vec n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;       // round to nearest
    vec r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    vec p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    return p * (vec)((__builtin_convertvector(n, ivec) + 127) << 23);
}

// erf to about 1 ulp: one polynomial near zero, 1 - exp(polynomial) elsewhere (N. Juffa's fit).
static inline vec erf_vector(vec a) {
    vec t = a < 0.0f ? -a : a, s = a * a;
    t = t > 4.0f ? 4.0f : t;                                     // from here on it is 1
    vec tail = -1.72853470e-5f * t + 3.83197126e-4f;
    tail = tail * (t * t) + (-3.88396438e-3f * t + 2.42546219e-2f);
    tail = tail * t - 1.06777877e-1f;
    tail = tail * t - 6.34846687e-1f;
    tail = tail * t - 1.28717512e-1f;
    vec far = 1.0f - exp_negative(tail * t - t);
    vec near = -5.96761703e-4f * s + 4.99119423e-3f;
    near = near * s - 2.67681349e-2f;
    near = near * s + 1.12819925e-1f;
    near = near * s - 3.76125336e-1f;
    near = near * s + 1.28379166e-1f;
    return t > 0.927734375f ? (a < 0.0f ? -far : far) : near * a + a;
}

extern "C" int matmul_bias_gelu(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    if (n_in != 3 || n_out != 1 || in[0].dtype != 0 || in[0].ndim != 2) return 1;
    const float* x = (const float*)in[0].data;
    const float* weight = (const float*)in[1].data;
    const float* bias = (const float*)in[2].data;
    float* y = (float*)out[0].data;
    int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
#pragma omp parallel
    {
        std::vector<float> panel(k * WIDTH);
#pragma omp for schedule(static)
        for (int64_t col = 0; col < n; col += WIDTH) {
            int64_t width = n - col < WIDTH ? n - col : WIDTH;
            for (int64_t i = 0; i < k; ++i) {
                for (int64_t j = 0; j < WIDTH; ++j) {
                    panel[i * WIDTH + j] = j < width ? weight[i * n + col + j] : 0.0f;
                }
            }
            float shift[WIDTH] = {};
            memcpy(shift, bias + col, width * sizeof(float));
            for (int64_t row = 0; row < m;) {
                alignas(64) float sums[6][WIDTH];
                int count = m - row >= 6 ? 6 : m - row >= 2 ? 2 : 1;
                const float* block = x + row * k;
                if (count == 6) tile<6>(block, panel.data(), k, sums[0]);
                else if (count == 2) tile<2>(block, panel.data(), k, sums[0]);
                else tile<1>(block, panel.data(), k, sums[0]);
                for (int r = 0; r < count; ++r) {
                    float* target = y + (row + r) * n + col;
                    for (int64_t j = 0; j < width; j += LANES) {
                        vec z = load(sums[r] + j) + load(shift + j);
                        vec gelu = 0.5f * z * (1.0f + erf_vector(z * 0.70710678f));
                        int64_t lanes = width - j < LANES ? width - j : LANES;
                        memcpy(target + j, &gelu, lanes * sizeof(float));
                    }
                }
                row += count;
            }
        }
    }
    return 0;
}
