#include "backend/choice/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tern::backend {

std::int64_t rows_bucket_of(std::int64_t m) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(m, 1, kMost))));
}

std::string rows_bucket_name(std::int64_t m) {
  const std::int64_t most = rows_bucket_of(m);
  return most <= 2 ? std::to_string(most) : fmt::format("{}-{}", most / 2 + 1, most);
}

int alignment_class(std::uint64_t bytes) {
  constexpr int kLargest = 64;
  if (bytes == 0) return kLargest;
  return static_cast<int>(
      std::min<std::uint64_t>(std::uint64_t{1} << std::countr_zero(bytes), kLargest));
}

std::string describe(const Problem& p) {
  return fmt::format("{} {}, {}, n {}, k {}, m {}", p.op, p.dtypes, p.layout, p.n, p.k,
                     rows_bucket_name(p.m));
}

}  // namespace tern::backend
