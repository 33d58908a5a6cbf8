// The functions behind the table of block_product, and the arithmetic of its layouts.
#pragma once

#include "backend/cpu/kernels/block_product/block_product.h"

namespace tern::cpu {

// Bytes of 8 outputs x 32 inputs, and of the scales and minima in front of the codes.
struct BlockShape {
  int bytes;
  int codes;  // offset
  bool has_minimum;
  bool is_byte;  // Q8_0
};
constexpr BlockShape block_shape(quant::Format format) {
  if (format == quant::Format::kQ4_0) return {144, 16, false, false};
  if (format == quant::Format::kQ4_1) return {160, 32, true, false};
  return {272, 16, false, true};
}

// Byte offsets of the arrays of one row of activations.
struct BlockActivationOffsets {
  std::int64_t hi, lo, scale, scaled_sum, sum, row_bytes;
};
constexpr BlockActivationOffsets block_activation_offsets(std::int64_t inputs) {
  const std::int64_t blocks = inputs / kBlockInputs;
  return {2 * inputs,
          3 * inputs,
          4 * inputs,
          4 * inputs + 4 * blocks,
          4 * inputs + 8 * blocks,
          (4 * inputs + 12 * blocks + 63) / 64 * 64};
}

void block_quantize_reference(const float* x, std::int64_t x_row_stride,
                              const BlockActivations& out, int row_begin, int row_end);
void block_product_reference(const BlockProductArgs& args, int row_begin, int row_end,
                             std::int64_t block_begin, std::int64_t block_end);
void block_product_f32_reference(const BlockProductArgs& args, int row_begin, int row_end,
                                 std::int64_t block_begin, std::int64_t block_end);

void block_quantize_avx2(const float* x, std::int64_t x_row_stride, const BlockActivations& out,
                         int row_begin, int row_end);
void block_product_avx2(const BlockProductArgs& args, int row_begin, int row_end,
                        std::int64_t block_begin, std::int64_t block_end);
void block_product_f32_avx2(const BlockProductArgs& args, int row_begin, int row_end,
                            std::int64_t block_begin, std::int64_t block_end);

void block_product_avx512vnni(const BlockProductArgs& args, int row_begin, int row_end,
                              std::int64_t block_begin, std::int64_t block_end);

}  // namespace tern::cpu
