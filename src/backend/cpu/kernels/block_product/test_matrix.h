// Random block matrices in the file's form and packed, and quantised rows, for tests and benchmarks
// of block_product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cpu/kernels/block_product/block_product.h"
#include "base/half.h"

namespace tern::cpu::testing {

// Bytes on a 64-byte boundary.
class Aligned {
 public:
  explicit Aligned(std::size_t bytes, int fill = 0xFF)
      : memory_(bytes + 64, static_cast<std::byte>(fill)) {}
  [[nodiscard]] std::byte* data() {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory_.data()) + 63) /
                                        64 * 64);
  }

 private:
  std::vector<std::byte> memory_;
};

inline void put_half(std::byte* to, float value) {
  const std::uint16_t half = float_to_half(value);
  std::memcpy(to, &half, sizeof half);
}

class TestMatrix {
 public:
  TestMatrix(quant::Format format, std::int64_t outputs, std::int64_t inputs,
             std::uint32_t seed = 71)
      : format_(format),
        outputs_(outputs),
        inputs_(inputs),
        row_bytes_(static_cast<std::int64_t>(
            quant::bytes_for(format, static_cast<std::uint64_t>(inputs)))),
        file_(static_cast<std::size_t>(outputs * row_bytes_)),
        packed_(block_matrix_bytes(format, outputs, inputs)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 0.02F);
    const int bytes = quant::info(format).block_bytes;
    for (std::size_t at = 0; at < file_.size(); at += static_cast<std::size_t>(bytes)) {
      for (int i = 0; i < bytes; i += 2) {  // blocks have an even number of bytes
        const auto value = static_cast<std::uint16_t>(random());
        std::memcpy(file_.data() + at + i, &value, 2);
      }
      put_half(file_.data() + at, normal(random));
      if (format == quant::Format::kQ4_1) put_half(file_.data() + at + 2, normal(random));
    }
    pack();
  }

  // Packs the file bytes again, in two calls.
  void pack() {
    const std::int64_t first = outputs_ / 3;
    block_pack_rows(format_, outputs_, inputs_, file_.data(), 0, first, packed_.data());
    block_pack_rows(format_, outputs_, inputs_, file_row(first), first, outputs_ - first,
                    packed_.data());
  }
  [[nodiscard]] std::byte* file_row(std::int64_t n) { return file_.data() + n * row_bytes_; }
  [[nodiscard]] const std::byte* file_row(std::int64_t n) const {
    return file_.data() + n * row_bytes_;
  }
  [[nodiscard]] BlockMatrix matrix() { return {format_, outputs_, inputs_, packed_.data()}; }

 private:
  quant::Format format_;
  std::int64_t outputs_, inputs_, row_bytes_;
  std::vector<std::byte> file_;
  Aligned packed_;
};

}  // namespace tern::cpu::testing
