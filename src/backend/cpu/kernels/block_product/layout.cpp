// The resident layout of block matrices: size, packing of file rows, decoding of single rows.
#include <cstring>

#include "backend/cpu/kernels/block_product/kernels.h"
#include "base/checked.h"
#include "base/half.h"

namespace tern::cpu {
namespace {

// The 8-output block that holds output n, at input block k.
template <class Byte>
Byte* block_at(Byte* data, const BlockShape& shape, std::int64_t inputs, std::int64_t n,
               std::int64_t k) {
  return data + (n / kBlockRows * (inputs / kBlockInputs) + k) * shape.bytes;
}

// Where input i (0..31) of a Q8_0 row stands: vector and byte of its pair.
constexpr int byte_slot(int i, int row) {
  const int vector = i / 4 * 2 + i % 2;
  return vector * 16 + 2 * row + i % 4 / 2;
}

void pack_block(const BlockShape& shape, const std::byte* file, int row, std::byte* block) {
  std::memcpy(block + 2 * row, file, 2);
  if (shape.has_minimum) std::memcpy(block + 16 + 2 * row, file + 2, 2);
  std::byte* codes = block + shape.codes;
  if (shape.is_byte) {
    for (int i = 0; i < kBlockInputs; ++i) codes[byte_slot(i, row)] = file[2 + i];
    return;
  }
  const std::byte* nibbles = file + (shape.has_minimum ? 4 : 2);
  for (int u = 0; u < 4; ++u) std::memcpy(codes + 32 * u + 4 * row, nibbles + 4 * u, 4);
}

float half_at(const std::byte* bytes) {
  std::uint16_t half = 0;
  std::memcpy(&half, bytes, sizeof half);
  return half_to_float(half);
}

void decode_block(quant::Format format, const BlockShape& shape, const std::byte* block, int row,
                  float* y) {
  const float d = half_at(block + 2 * row);
  const float m = shape.has_minimum ? half_at(block + 16 + 2 * row) : 0.0F;
  const std::byte* codes = block + shape.codes;
  for (int i = 0; i < kBlockInputs; ++i) {
    if (shape.is_byte) {
      y[i] = static_cast<float>(std::to_integer<std::int8_t>(codes[byte_slot(i, row)])) * d;
      continue;
    }
    const int byte = std::to_integer<int>(codes[i % 16 / 4 * 32 + 4 * row + i % 4]);
    const int code = i < 16 ? byte & 15 : byte >> 4;
    y[i] = format == quant::Format::kQ4_0 ? static_cast<float>(code - 8) * d
                                          : static_cast<float>(code) * d + m;
  }
}

}  // namespace

std::uint64_t block_matrix_bytes(quant::Format format, std::int64_t outputs, std::int64_t inputs) {
  return static_cast<std::uint64_t>(ceil_div(outputs, kBlockRows)) *
         static_cast<std::uint64_t>(inputs / kBlockInputs) *
         static_cast<std::uint64_t>(block_shape(format).bytes);
}

void block_pack_rows(quant::Format format, std::int64_t outputs, std::int64_t inputs,
                     const std::byte* file_rows, std::int64_t first_output, std::int64_t count,
                     std::byte* data) {
  const BlockShape shape = block_shape(format);
  const int file_block = quant::info(format).block_bytes;
  for (std::int64_t n = first_output; n < first_output + count; ++n) {
    for (std::int64_t k = 0; k < inputs / kBlockInputs; ++k, file_rows += file_block) {
      pack_block(shape, file_rows, static_cast<int>(n % kBlockRows),
                 block_at(data, shape, inputs, n, k));
    }
  }
  if (first_output + count != outputs || outputs == 0) return;
  const std::byte zeros[34] = {};
  for (std::int64_t n = outputs; n < round_up(outputs, kBlockRows); ++n) {
    for (std::int64_t k = 0; k < inputs / kBlockInputs; ++k) {
      pack_block(shape, zeros, static_cast<int>(n % kBlockRows),
                 block_at(data, shape, inputs, n, k));
    }
  }
}

bool block_embed(const BlockMatrix& w, const std::int32_t* ids, float* y, std::int64_t y_row_stride,
                 int begin, int end) {
  const BlockShape shape = block_shape(w.format);
  bool all_inside = true;
  for (int i = begin; i < end; ++i) {
    float* row = y + i * y_row_stride;
    if (ids[i] < 0 || ids[i] >= w.outputs) {
      all_inside = false;
      for (std::int64_t k = 0; k < w.inputs; ++k) row[k] = 0;
      continue;
    }
    for (std::int64_t k = 0; k < w.inputs / kBlockInputs; ++k) {
      decode_block(w.format, shape, block_at(w.data, shape, w.inputs, ids[i], k),
                   ids[i] % kBlockRows, row + k * kBlockInputs);
    }
  }
  return all_inside;
}

}  // namespace tern::cpu
