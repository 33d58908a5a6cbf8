// Blocks of any bytes through every decoder: codes times scale are the weights, and ternary weights
// survive encoding.
#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "base/half.h"
#include "quant/codec.h"
#include "tests/fuzz/fuzz.h"

using namespace tern;
using namespace tern::quant;

namespace {

bool equal_or_nan(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void check_packed(Format format, std::span<const std::byte> blocks, const std::vector<float>& row) {
  const auto group = static_cast<std::size_t>(info(format).group);
  const auto count = static_cast<std::int64_t>(row.size());
  std::vector<std::int8_t> codes(row.size());
  std::vector<std::uint16_t> scales(row.size() / group);
  decode_codes_row(format, blocks.data(), count, codes.data(), scales.data());
  bool is_ternary = !first_bad_scale(format, blocks).has_value();
  for (std::size_t j = 0; j < row.size(); ++j) {
    const float d = half_to_float(scales[j / group]);
    fuzz_require(codes[j] >= -1 && codes[j] <= 2, "codes are -1 to 2");
    fuzz_require(equal_or_nan(row[j], static_cast<float>(codes[j]) * d), "weight = code * scale");
    is_ternary = is_ternary && codes[j] <= 1;
  }
  if (!is_ternary) return;
  std::vector<std::byte> again(blocks.size());
  fuzz_require(encode_row(format, row.data(), count, again.data()).ok(), "ternary rows encode");
  std::vector<float> decoded(row.size());
  decode_row(format, again.data(), count, decoded.data());
  fuzz_require(decoded == row, "ternary rows are exact");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Format format = kFormats[data[0] % kFormats.size()].format;
  const FormatInfo& f = info(format);
  const std::size_t blocks = (size - 1) / static_cast<std::size_t>(f.block_bytes);
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1))
                         .first(blocks * static_cast<std::size_t>(f.block_bytes));
  std::vector<float> row(blocks * static_cast<std::size_t>(f.group));
  decode_row(format, bytes.data(), static_cast<std::int64_t>(row.size()), row.data());
  const bool is_finite = std::ranges::all_of(row, [](float w) { return std::isfinite(w); });
  if (f.kind != FormatClass::kDense) {
    const bool is_clean = !first_bad_scale(format, bytes).has_value();
    fuzz_require(!is_clean || is_finite, "finite scales give finite weights");
  }
  if (is_packed(format)) check_packed(format, bytes, row);
  return 0;
}
