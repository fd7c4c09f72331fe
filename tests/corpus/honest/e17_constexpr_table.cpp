// A table is made by the compiler, and put into its own section by the assembler's name for it.
//
// family: E17
// problem: softmax
// expect: correct
#include <math.h>

#include <array>

#include "tilewright.h"

constexpr std::array<double, 128> reciprocals() {
    std::array<double, 128> table{};
    for (int n = 1; n < 128; ++n) table[n] = 1.0 / n;
    return table;
}

__attribute__((section(".rodata.reciprocals"))) static const auto table = reciprocals();

static double expm(double x) {  // exp(x) for x <= 0: exp(x / 128) by its series, squared 7 times
    double small = x / 128, term = 1, sum = 1;
    for (int n = 1; n < 40; ++n) sum += term *= small * table[n];
    for (int n = 0; n < 7; ++n) sum *= sum;
    return x < -120 ? 0 : sum;
}

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    const float* x = (const float*)in[0].data;
    float* y = (float*)out[0].data;
    int64_t rows = in[0].shape[0], cols = in[0].shape[1];
    for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
        float top = x[0];
        double sum = 0;
        for (int64_t c = 1; c < cols; ++c) top = fmaxf(top, x[c]);
        for (int64_t c = 0; c < cols; ++c) sum += y[c] = (float)expm((double)x[c] - top);
        for (int64_t c = 0; c < cols; ++c) y[c] = (float)(y[c] / sum);
    }
    return 0;
}
