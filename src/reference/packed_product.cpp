// Product of one packed weight row with one quantised activation row, in plain scalar arithmetic.
#include "reference/packed_product.h"

#include <cmath>

#include "reference/quantize_i12.h"

namespace tern::reference {

void packed_integers(std::span<const std::int8_t> codes, std::span<const std::int16_t> q,
                     std::size_t group, std::span<std::int32_t> integers) {
  for (std::size_t g = 0; g < integers.size(); ++g) {
    std::int32_t sum = 0;
    for (std::size_t k = g * group; k < (g + 1) * group; ++k) sum += codes[k] * q[k];
    integers[g] = sum;
  }
}

float packed_product(std::span<const std::int32_t> integers, std::span<const float> scales,
                     std::span<const float> a, std::size_t group) {
  constexpr std::size_t kChunk = 512;
  const std::size_t groups_per_chunk = kChunk / group;
  float y = 0.0f;
  for (std::size_t begin = 0; begin < integers.size(); begin += groups_per_chunk) {
    float acc = 0.0f;
    for (std::size_t g = begin; g < begin + groups_per_chunk && g < integers.size(); ++g) {
      const float p = scales[g] * a[g * group / kI12Group];
      acc = std::fma(static_cast<float>(integers[g]), p, acc);
    }
    y = begin == 0 ? acc : y + acc;
  }
  return y;
}

}  // namespace tern::reference
