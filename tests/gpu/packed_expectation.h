// What the kernels of packed products must give, from the reference functions alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "backend/cuda/kernels/kernels.h"
#include "base/half.h"
#include "quant/q1_g128.h"
#include "reference/packed_product.h"
#include "reference/quantize_i12.h"

namespace tern::gpu_tests {

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

// The record that the device must write, byte by byte; bytes between the parts stay 0xA5.
[[nodiscard]] inline std::vector<std::byte> expected_record(const QuantizedRow& row) {
  const auto width = static_cast<std::int64_t>(row.q.size());
  const cuda::RecordLayout layout = cuda::record_layout(width);
  std::vector<std::byte> record(layout.record_bytes, std::byte{0xA5});
  const std::uint64_t chunks = layout.scales_offset / kTernPlaneChunkBytes;
  for (std::uint64_t group = 0; group < chunks * kTernChunkGroups; ++group) {
    std::int32_t sum = 0;
    const std::uint64_t chunk = group / kTernChunkGroups;
    const std::uint64_t slot = group % kTernChunkGroups;
    for (std::uint64_t plane = 0; plane < kTernPlanes; ++plane)
      for (std::uint64_t t = 0; t < 4; ++t) {
        std::uint32_t word = 0;
        for (std::uint64_t k = 0; k < 32; ++k) {
          const std::uint64_t at = group * 128 + t * 32 + k;
          const int q = at < row.q.size() ? row.q[at] : 0;
          if ((q >> plane & 1) != 0) word |= 1U << k;
          if (plane == 0) sum += q;
        }
        const std::uint64_t lane = 8 * (plane % 4) + 4 * (plane / 4) + t;
        const std::uint64_t index =
            plane < 8 ? lane * 4 + slot : 128 + (4 * (plane - 8) + t) * 4 + slot;
        std::memcpy(&record[chunk * kTernPlaneChunkBytes + index * 4], &word, 4);
      }
    const float a = group < row.a.size() ? row.a[group] : 0.0F;
    std::byte* scales = &record[layout.scales_offset + chunk * kTernScaleChunkBytes];
    std::memcpy(scales + slot * 4, &a, 4);
    std::memcpy(scales + 16 + slot * 4, &sum, 4);
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

[[nodiscard]] inline std::vector<std::byte> tiles16(const std::vector<std::byte>& blocks,
                                                    std::int64_t rows, std::int64_t inputs) {
  std::vector<std::byte> tiles(cuda::tiles16_bytes(rows, inputs));
  (void)cuda::repack_tiles16(blocks.data(), inputs, rows, tiles.data());
  return tiles;
}

}  // namespace tern::gpu_tests
