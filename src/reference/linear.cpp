// The scalar formulas of linear, written for reading.
#include "reference/linear.h"

#include <cmath>
#include <cstring>

#include "base/half.h"

namespace tern::reference {
namespace {

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

float half_at(const std::byte* bytes) { return half_to_float(load<std::uint16_t>(bytes)); }

// Byte i of the codes holds weight i in its low and weight i + 16 in its high nibble.
int nibble(const std::byte* codes, std::int64_t index) {
  const int byte = std::to_integer<int>(codes[index % 16]);
  return index < 16 ? byte & 15 : byte >> 4;
}

}  // namespace

float decode_weight(quant::Format format, const std::byte* row, std::int64_t index) {
  const quant::FormatInfo& format_info = quant::info(format);
  const std::byte* block = row + index / format_info.group * format_info.block_bytes;
  const std::int64_t i = index % format_info.group;
  switch (format) {
    case quant::Format::kF32:
      return load<float>(block);
    case quant::Format::kF16:
      return half_at(block);
    case quant::Format::kBf16:
      return bf16_to_float(load<std::uint16_t>(block));
    case quant::Format::kQ4_0:
      return static_cast<float>(nibble(block + 2, i) - 8) * half_at(block);
    case quant::Format::kQ4_1:
      return static_cast<float>(nibble(block + 4, i)) * half_at(block) + half_at(block + 2);
    case quant::Format::kQ8_0:
      return static_cast<float>(std::to_integer<std::int8_t>(block[2 + i])) * half_at(block);
    default:
      return std::nanf("");  // packed formats have a reference of their own
  }
}

LinearResult linear_row(quant::Format format, const std::byte* row, const float* x,
                        std::int64_t inputs) {
  LinearResult result;
  for (std::int64_t k = 0; k < inputs; ++k) {
    const double term =
        static_cast<double>(x[k]) * static_cast<double>(decode_weight(format, row, k));
    result.value += term;
    result.magnitude += std::fabs(term);
  }
  return result;
}

}  // namespace tern::reference
