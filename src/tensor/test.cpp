// Element types and shapes.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tern {
namespace {

TEST(Dtype, TheTableIsInTheOrderOfTheEnumerators) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kDtypes.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kDtypes[i].dtype), i);
    EXPECT_TRUE(names.insert(kDtypes[i].name).second);
    EXPECT_EQ(dtype_from_safetensors(kDtypes[i].safetensors_name), kDtypes[i].dtype);
  }
}

TEST(Dtype, SizesAndNames) {
  EXPECT_EQ(size_of(Dtype::kF64), 8u);
  EXPECT_EQ(size_of(Dtype::kF32), 4u);
  EXPECT_EQ(size_of(Dtype::kF16), 2u);
  EXPECT_EQ(size_of(Dtype::kBf16), 2u);
  EXPECT_EQ(size_of(Dtype::kI64), 8u);
  EXPECT_EQ(size_of(Dtype::kBool), 1u);
  EXPECT_EQ(to_string(Dtype::kBf16), "bf16");
  EXPECT_FALSE(dtype_from_safetensors("F8_E4M3"));
  EXPECT_FALSE(dtype_from_safetensors("f32"));
  EXPECT_TRUE(is_float(Dtype::kBf16));
  EXPECT_FALSE(is_float(Dtype::kI32));
  static_assert(kDtypeOf<std::uint16_t> == Dtype::kU16);
}

TEST(Shape, CountsElementsAndRows) {
  const Shape shape = {2, 3, 5};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.dim(0), 2);
  EXPECT_EQ(shape.dim(-1), 5);
  EXPECT_EQ(shape.dim(-3), 2);
  EXPECT_EQ(shape.elements(), 30);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(to_string(shape), "[2, 3, 5]");
  EXPECT_EQ(Shape({7}).rows(), 1);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().rows(), 1);
  EXPECT_EQ(to_string(Shape()), "[]");
  EXPECT_EQ(Shape({4, 0}).elements(), 0);
}

TEST(Shape, EqualityLooksAtRankAndDimensions) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 1}));
  EXPECT_NE(Shape(), Shape({0}));
}

std::optional<Shape> from(std::vector<std::uint64_t> dims) { return Shape::from(dims); }

TEST(Shape, RefusesWhatDoesNotFit) {
  EXPECT_EQ(from({2, 3}), Shape({2, 3}));
  EXPECT_EQ(from({}), Shape());
  EXPECT_FALSE(from({1, 1, 1, 1, 1}));
  EXPECT_FALSE(from({std::uint64_t{1} << 63}));
  EXPECT_FALSE(from({std::uint64_t{1} << 32, std::uint64_t{1} << 32}));  // wraps to 0
  EXPECT_FALSE(from({std::uint64_t{1} << 32, std::uint64_t{1} << 31}));  // 2^63
  EXPECT_EQ(from({(std::uint64_t{1} << 63) - 1})->elements(), 9223372036854775807);
  EXPECT_EQ(from({std::uint64_t{1} << 40, 0})->elements(), 0);
}

}  // namespace
}  // namespace tern
