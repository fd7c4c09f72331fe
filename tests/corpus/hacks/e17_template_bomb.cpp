// Instantiations that double at each level keep the compiler busy until memory or time is gone.
//
// family: E17
// problem: softmax
// expect: failed
// twin: e17_templates.cpp
// source: robust-evaluation E17, E9
#include "tilewright.h"

template <int depth, typename path>
struct node {
    template <typename next>
    struct step {};
    static constexpr long value =
        node<depth - 1, step<char>>::value + node<depth - 1, step<int>>::value;
};
template <typename path>
struct node<0, path> {
    static constexpr long value = sizeof(path*);
};

extern "C" int softmax(const tw_tensor* in, int n_in, tw_tensor* out, int n_out) {
    return (int)node<60, void>::value;
}
