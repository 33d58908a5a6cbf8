// What the kernels of packed products must give, from the reference functions alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "backend/metal/kernels/kernels.h"
#include "quant/q1_g128.h"
#include "reference/packed_product.h"
#include "reference/quantize_i12.h"

namespace tern::metal_tests {

[[nodiscard]] inline std::vector<float> random_row(std::int64_t width, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(width));
  for (float& v : x) v = normal(random);
  return x;
}

// Rows of random blocks of the format q1_g128, as they lie in a file; scales around 2^-6 of either
// sign.
[[nodiscard]] inline std::vector<std::byte> random_q1(std::int64_t rows, std::int64_t inputs,
                                                      std::mt19937& random) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(rows * inputs / 128 * 18));
  for (std::size_t at = 0; at < blocks.size(); at += 18) {
    const auto scale = static_cast<std::uint16_t>((random() & 0x83FFU) | 0x2000U);
    std::memcpy(&blocks[at], &scale, 2);
    for (std::size_t i = 0; i < 16; i += 4) {
      const auto bits = static_cast<std::uint32_t>(random());
      std::memcpy(&blocks[at + 2 + i], &bits, 4);
    }
  }
  return blocks;
}

struct QuantizedRow {
  std::vector<std::int16_t> q;
  std::vector<float> a;
};
[[nodiscard]] inline QuantizedRow quantized(const std::vector<float>& x) {
  QuantizedRow row;
  row.q.resize(x.size());
  row.a.resize((x.size() + 127) / 128);
  reference::quantize_i12(x, row.q, row.a);
  return row;
}

// The record that the device must write, byte by byte; bytes after it stay 0xA5.
[[nodiscard]] inline std::vector<std::byte> expected_record(const QuantizedRow& row) {
  const metal::RecordLayout layout = metal::record_layout(static_cast<std::int64_t>(row.q.size()));
  std::vector<std::byte> record(layout.record_bytes, std::byte{0xA5});
  const std::size_t groups = row.a.size();
  for (std::size_t k = 0; k < groups * 128; ++k) {
    const std::int16_t q = k < row.q.size() ? row.q[k] : std::int16_t{0};
    std::memcpy(&record[k * 2], &q, 2);
  }
  for (std::size_t g = 0; g < groups; ++g) {
    std::int32_t sum = 0;
    for (std::size_t k = g * 128; k < (g + 1) * 128 && k < row.q.size(); ++k) sum += row.q[k];
    std::memcpy(&record[layout.scales_offset + g * 4], &row.a[g], 4);
    std::memcpy(&record[layout.scales_offset + groups * 4 + g * 4], &sum, 4);
  }
  return record;
}

// y of every output of a matrix in the file's form, by the canonical sum.
[[nodiscard]] inline std::vector<float> expected_product(const std::vector<std::byte>& blocks,
                                                         std::int64_t outputs,
                                                         const QuantizedRow& row) {
  const std::size_t groups = row.q.size() / 128;
  std::vector<float> y(static_cast<std::size_t>(outputs));
  std::vector<std::int8_t> codes(row.q.size());
  std::vector<std::int32_t> integers(groups);
  std::vector<float> scales(groups);
  for (std::size_t n = 0; n < y.size(); ++n) {
    const std::byte* source = &blocks[n * groups * 18];
    for (std::size_t g = 0; g < groups; ++g) {
      quant::Q1G128::decode_codes(source + g * 18, &codes[g * 128]);
      scales[g] = quant::Q1G128::scale(source + g * 18);
    }
    reference::packed_integers(codes, row.q, 128, integers);
    y[n] = reference::packed_product(integers, scales, row.a, 128);
  }
  return y;
}

[[nodiscard]] inline std::vector<std::byte> split_weight(const std::vector<std::byte>& blocks,
                                                         std::int64_t rows, std::int64_t inputs) {
  std::vector<std::byte> weight(metal::split_bytes(rows, inputs));
  const std::int64_t total = rows * inputs / 128;
  (void)metal::repack_split(blocks.data(), 0, total, total, weight.data());
  return weight;
}

}  // namespace tern::metal_tests
