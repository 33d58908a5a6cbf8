// The functions behind the table of dense_product: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/dense_product/dense_product.h"

namespace tern::cpu {

void dense_product_reference(const DenseProductArgs& args, int row_begin, int row_end,
                             std::int64_t out_begin, std::int64_t out_end);
void dense_product_avx2(const DenseProductArgs& args, int row_begin, int row_end,
                        std::int64_t out_begin, std::int64_t out_end);

}  // namespace tern::cpu
