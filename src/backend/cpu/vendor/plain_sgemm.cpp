// A blocked product of packed panels in portable code; the compiler vectorises the innermost loop.
#include "backend/cpu/vendor/plain_sgemm.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tern::cpu {

namespace {

constexpr int kDepth = 256;  // of k per block: 64 KiB of B and 4 KiB of A
constexpr int kColumns = 64;
constexpr int kRows = 4;
constexpr int kLane = 8;  // 4 x 8 sums are 8 registers of 128 bits

using PackedB = std::array<float, std::size_t{kDepth} * kColumns>;
using PackedA = std::array<float, std::size_t{kDepth} * kRows>;

float at(const float* matrix, int stride, bool is_transposed, int row, int column) {
  const auto wide = static_cast<std::ptrdiff_t>(stride);
  return is_transposed ? matrix[column * wide + row] : matrix[row * wide + column];
}

// b[i][j] for i below depth, j below kColumns, zero beyond the matrix.
void pack_b(const SgemmArgs& x, int k_begin, int depth, int n_begin, int columns, PackedB& packed) {
  for (int i = 0; i < depth; ++i) {
    float* row = packed.data() + static_cast<std::ptrdiff_t>(i) * kColumns;
    for (int j = 0; j < columns; ++j)
      row[j] = at(x.b, x.b_row_stride, x.is_b_transposed, k_begin + i, n_begin + j);
    std::fill(row + columns, row + kColumns, 0.0f);
  }
}

void pack_a(const SgemmArgs& x, int m_begin, int rows, int k_begin, int depth, PackedA& packed) {
  for (int i = 0; i < depth; ++i) {
    for (int r = 0; r < kRows; ++r) {
      packed[static_cast<std::size_t>(i * kRows + r)] =
          r < rows ? at(x.a, x.a_row_stride, x.is_a_transposed, m_begin + r, k_begin + i) : 0.0f;
    }
  }
}

// The sums of 4 rows and 8 columns, added to c (or put there, scaled by beta, in the first block).
void tile(const SgemmArgs& x, const PackedA& a, const float* b, int depth, int row, int rows,
          int column, int columns, bool is_first) {
  float sums[kRows][kLane] = {};
  for (int i = 0; i < depth; ++i) {
    const float* lane = b + static_cast<std::ptrdiff_t>(i) * kColumns;
    for (int r = 0; r < kRows; ++r) {
      const float factor = a[static_cast<std::size_t>(i * kRows + r)];
      for (int j = 0; j < kLane; ++j) sums[r][j] += factor * lane[j];
    }
  }
  for (int r = 0; r < rows; ++r) {
    float* c = x.c + static_cast<std::ptrdiff_t>(row + r) * x.c_row_stride + column;
    for (int j = 0; j < columns; ++j) {
      const float before = !is_first ? c[j] : x.beta == 0.0f ? 0.0f : x.beta * c[j];
      c[j] = before + x.alpha * sums[r][j];
    }
  }
}

}  // namespace

void plain_sgemm(const SgemmArgs& x) noexcept {
  PackedB b;
  PackedA a;
  for (int n = 0; n < x.n; n += kColumns) {
    const int columns = std::min(kColumns, x.n - n);
    for (int k = 0; k < x.k; k += kDepth) {
      const int depth = std::min(kDepth, x.k - k);
      pack_b(x, k, depth, n, columns, b);
      for (int m = 0; m < x.m; m += kRows) {
        const int rows = std::min(kRows, x.m - m);
        pack_a(x, m, rows, k, depth, a);
        for (int j = 0; j < columns; j += kLane)
          tile(x, a, b.data() + j, depth, m, rows, n + j, std::min(kLane, columns - j), k == 0);
      }
    }
  }
}

}  // namespace tern::cpu
