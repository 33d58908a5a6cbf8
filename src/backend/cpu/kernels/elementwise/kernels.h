// The functions behind the table of elementwise: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/elementwise/elementwise.h"

namespace tern::cpu {

void add_reference(const AddArgs& args, int row_begin, int row_end);
void add_avx2(const AddArgs& args, int row_begin, int row_end);
bool has_non_finite_reference(const float* x, std::int64_t row_stride, std::int64_t width,
                              int row_begin, int row_end);
bool has_non_finite_avx2(const float* x, std::int64_t row_stride, std::int64_t width, int row_begin,
                         int row_end);

}  // namespace tern::cpu
