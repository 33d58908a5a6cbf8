// argmax: the lowest index of the largest value; NaN is never chosen.
#pragma once

#include <cstdint>

namespace tern::reference {

struct Argmax {
  std::int64_t index = -1;  // -1: nothing but NaN
  bool has_nan = false;
  bool has_finite = false;
};

[[nodiscard]] Argmax argmax(const float* x, std::int64_t begin, std::int64_t end);

}  // namespace tern::reference
