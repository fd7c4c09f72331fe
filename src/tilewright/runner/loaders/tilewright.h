// The C ABI between tilewright and a C++ kernel. See docs/reference/formats.md.
#pragma once

#include <stdint.h>

typedef struct {
    void* data;            // contiguous, row-major
    int64_t shape[8];
    int64_t stride[8];     // in elements
    int32_t ndim;
    int32_t dtype;         // 0 f32, 1 f64, 2 f16, 3 bf16, 4 i8, 5 i16, 6 i32, 7 i64, 8 u8, 9 bool,
                           // 10 f8e4m3fn, 11 f8e5m2, 12 complex64, 13 complex128
} tw_tensor;
