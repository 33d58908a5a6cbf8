// What is chosen for: an op with its types, the shape of its weight, and the number of rows.
#pragma once

#include <cstdint>
#include <string>

namespace tern::backend {

// y[m, n] = x[m, k] by a weight of n outputs and k inputs. Ops without a weight have a width n and
// k = 0. A kernel reads nothing else of a problem, so that two equal problems have one answer.
struct Problem {
  std::string op;      // of the pin and of the table: "dense_product"
  std::string dtypes;  // input x weight -> output: "f32 x f16 -> f32"
  std::string layout;  // of the weight: "rows", "rows32 binary g128"
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t m = 1;
  // Largest power of two, at most 64, that divides every address and row stride, in bytes.
  int alignment = 64;

  friend bool operator==(const Problem&, const Problem&) = default;
};

// The number of rows that stands for a bucket, its largest: 1, 2, 4 (for 3 and 4), 8 (5 to 8), ...
[[nodiscard]] std::int64_t rows_bucket_of(std::int64_t m);
// "1", "2", "3-4", "5-8", ... of any m in it.
[[nodiscard]] std::string rows_bucket_name(std::int64_t m);

// The largest power of two that divides `bytes`, at most 64 (and 64 for 0).
[[nodiscard]] int alignment_class(std::uint64_t bytes);

// "dense_product f32 x f16 -> f32, rows, n 4096, k 576, m 17-32": for messages.
[[nodiscard]] std::string describe(const Problem& problem);

}  // namespace tern::backend
