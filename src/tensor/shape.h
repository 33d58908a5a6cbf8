// The shape of a tensor: up to four dimensions, outermost first, row-major.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "base/checked.h"
#include "base/error.h"

namespace tern {

// Rank 0 is a scalar with one element. The last dimension is contiguous: [rows, inputs]. A
// dimension may be 0.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  constexpr Shape() = default;
  // For shapes that the program itself makes: at most four dimensions, none negative, product below
  // 2^63.
  constexpr Shape(std::initializer_list<std::int64_t> dims) {
    TERN_ASSERT(dims.size() <= kMaxRank);
    for (std::int64_t d : dims) {
      TERN_ASSERT(d >= 0);
      dims_[static_cast<std::size_t>(rank_++)] = d;
    }
  }
  // For dimensions from a file: nothing when there are more than four, one is 2^63 or more, or the
  // product is.
  [[nodiscard]] static constexpr std::optional<Shape> from(std::span<const std::uint64_t> dims) {
    if (dims.size() > kMaxRank) return std::nullopt;
    Shape result;
    std::uint64_t product = 1;
    for (std::uint64_t d : dims) {
      const auto dim = checked_cast<std::int64_t>(d);
      const auto next = checked_mul(product, d);
      if (!dim || !next || !checked_cast<std::int64_t>(*next)) return std::nullopt;
      product = *next;
      result.dims_[static_cast<std::size_t>(result.rank_++)] = *dim;
    }
    return result;
  }

  [[nodiscard]] constexpr int rank() const { return rank_; }
  // i counts from the outermost; a negative i from the end: dim(-1) is the contiguous one.
  [[nodiscard]] constexpr std::int64_t dim(int i) const {
    const int index = i < 0 ? i + rank_ : i;
    TERN_ASSERT(index >= 0 && index < rank_);
    return dims_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] constexpr std::span<const std::int64_t> dims() const {
    return {dims_.data(), static_cast<std::size_t>(rank_)};
  }
  // The product of all dimensions.
  [[nodiscard]] constexpr std::int64_t elements() const {
    std::int64_t product = 1;
    for (std::int64_t d : dims()) product *= d;
    return product;
  }
  // All but the last dimension multiplied: how many contiguous rows there are. 1 for a scalar.
  [[nodiscard]] constexpr std::int64_t rows() const {
    std::int64_t product = 1;
    for (int i = 0; i + 1 < rank_; ++i) product *= dims_[static_cast<std::size_t>(i)];
    return product;
  }

  constexpr bool operator==(const Shape&) const = default;

 private:
  std::array<std::int64_t, kMaxRank> dims_{};  // those beyond the rank are 0
  int rank_ = 0;
};

// "[2, 3]"; a scalar is "[]".
[[nodiscard]] std::string to_string(const Shape& shape);

}  // namespace tern
