// argmax: the index of the largest value of a row, in parts that several threads find and one
// merges.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "base/cpu_features.h"

namespace tern::cpu {

// The best of some columns of a row.
struct ArgmaxPart {
  float value = -std::numeric_limits<float>::infinity();
  std::int64_t index = -1;  // lowest index of the largest value that is not NaN; -1: there is none
  bool has_nan = false;     // a NaN was seen (and never chosen)
  bool has_finite = false;  // a finite value was seen
};

// The best of columns [begin, end) of a row; index counts from column 0. Class E: ties go to the
// lowest index. Threads: any split of columns; parts are joined by merge_argmax.
using ArgmaxFn = ArgmaxPart (*)(const float* row, std::int64_t begin, std::int64_t end);

// Parts in any order; the lower index wins a tie.
[[nodiscard]] constexpr ArgmaxPart merge_argmax(const ArgmaxPart& a, const ArgmaxPart& b) {
  const bool take_b = b.index >= 0 && (a.index < 0 || b.value > a.value ||
                                       (b.value == a.value && b.index < a.index));
  ArgmaxPart best = take_b ? b : a;
  best.has_nan = a.has_nan || b.has_nan;
  best.has_finite = a.has_finite || b.has_finite;
  return best;
}

// The row's choice is usable: something finite is there and nothing is NaN (KS-08: never "index 0
// is right").
[[nodiscard]] constexpr bool is_usable(const ArgmaxPart& part) {
  return part.index >= 0 && part.has_finite && !part.has_nan;
}

struct ArgmaxVariant {
  const char* name;
  CpuFeatures needs;
  ArgmaxFn run;
};

// Fastest first; the last needs nothing.
[[nodiscard]] std::span<const ArgmaxVariant> argmax_variants();

}  // namespace tern::cpu
