// Every variant of dense_product against f64 sums of the same (already rounded) operands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/kernels/dense_product/dense_product.h"
#include "backend/cpu/kernels/elementwise/test_rows.h"
#include "base/half.h"
#include "reference/linear.h"

namespace tern::cpu {
namespace {

using quant::Format;
using testing::Rows;

class DenseProduct : public ::testing::TestWithParam<DenseProductVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
};

// [outputs][inputs] with a row stride that is larger than the row; the gaps hold NaN.
struct Weights {
  Weights(Format f, std::int64_t outputs, std::int64_t inputs)
      : format(f), stride(inputs + 3), bytes(quant::info(f).block_bytes) {
    data.assign(static_cast<std::size_t>((outputs * stride + 1) * bytes), std::byte{0xFF});
    std::mt19937 random(61);
    std::normal_distribution<float> normal(0, 1);
    for (std::int64_t n = 0; n < outputs; ++n) {
      for (std::int64_t k = 0; k < inputs; ++k) set(n, k, normal(random));
    }
  }
  void set(std::int64_t n, std::int64_t k, float value) {
    std::byte* to = data.data() + (n * stride + k) * bytes;
    const std::uint16_t half = format == Format::kF16 ? float_to_half(value) : float_to_bf16(value);
    if (format == Format::kF32) {
      std::memcpy(to, &value, 4);
    } else {
      std::memcpy(to, &half, 2);
    }
  }
  [[nodiscard]] const std::byte* row(std::int64_t n) const {
    return data.data() + n * stride * bytes;
  }

  Format format;
  std::int64_t stride;
  std::int64_t bytes;
  std::vector<std::byte> data;
};

DenseProductArgs make_args(const Weights& w, std::int64_t inputs, const Rows& x, Rows& y) {
  DenseProductArgs args;
  args.format = w.format;
  args.w = w.data.data();
  args.w_row_stride = w.stride;
  args.inputs = inputs;
  args.x = x.data();
  args.x_row_stride = x.stride();
  args.y = y.data();
  args.y_row_stride = y.stride();
  return args;
}

void expect_class_f(const Weights& w, const Rows& x, const Rows& y, int outputs) {
  const std::int64_t inputs = x.width();
  for (int r = 0; r < x.rows(); ++r) {
    for (int n = 0; n < outputs; ++n) {
      const reference::LinearResult e = reference::linear_row(w.format, w.row(n), x.row(r), inputs);
      const double bound = 4 * std::sqrt(static_cast<double>(inputs)) * 0x1p-24 * e.magnitude;
      ASSERT_NEAR(y.row(r)[n], e.value, bound) << "row " << r << " output " << n << " K " << inputs;
    }
  }
}

TEST_P(DenseProduct, StaysInClassFForRaggedShapesAndAllFormats) {
  for (const Format format : {Format::kF32, Format::kF16, Format::kBf16}) {
    for (const int inputs : {1, 3, 7, 8, 9, 31, 33, 100, 4097}) {
      for (const int outputs : {1, 3, 4, 5, 9}) {
        for (const int rows : {1, 2, 3, 4, 8}) {
          if (inputs == 4097 && rows * outputs > 12) continue;
          const Weights w(format, outputs, inputs);
          Rows x(rows, inputs);
          x.fill_normal(62);
          Rows y(rows, outputs);
          GetParam().run(make_args(w, inputs, x, y), 0, rows, 0, outputs);
          expect_class_f(w, x, y, outputs);
          EXPECT_TRUE(y.guards_are_intact());
        }
      }
    }
  }
}

TEST_P(DenseProduct, RowsAndRangesDoNotChangeABit) {
  const int rows = 131;  // more than a chunk
  const int outputs = 11;
  const int inputs = 77;
  const Weights w(Format::kF16, outputs, inputs);
  Rows x(rows, inputs);
  x.fill_normal(63);
  Rows y(rows, outputs);
  GetParam().run(make_args(w, inputs, x, y), 0, rows, 0, outputs);
  expect_class_f(w, x, y, outputs);
  Rows parts(rows, outputs);
  const DenseProductArgs args = make_args(w, inputs, x, parts);
  for (int r = 0; r < rows; ++r) {
    const int cut = r % (outputs + 1);
    GetParam().run(args, r, r + 1, cut, outputs);
    GetParam().run(args, r, r + 1, 0, cut);
    ASSERT_TRUE(testing::same_bits(parts.row(r), y.row(r), outputs)) << r;
  }
}

TEST_P(DenseProduct, AddsBiasAndResidualAfterTheSum) {
  const Weights w(Format::kF32, 6, 10);
  Rows x(2, 10);
  x.fill_normal(64);
  Rows plain(2, 6);
  GetParam().run(make_args(w, 10, x, plain), 0, 2, 0, 6);
  Rows bias(1, 6);
  bias.fill_normal(65);
  Rows stream(2, 6, 2);
  stream.fill_normal(66);
  const Rows before = stream;
  DenseProductArgs args = make_args(w, 10, x, stream);
  args.bias = bias.row(0);
  args.residual = stream.data();  // in place
  args.residual_row_stride = stream.stride();
  GetParam().run(args, 0, 2, 0, 6);
  for (int r = 0; r < 2; ++r) {
    for (int n = 0; n < 6; ++n) {
      EXPECT_EQ(stream.row(r)[n], before.row(r)[n] + (plain.row(r)[n] + bias.row(0)[n]));
    }
  }
  EXPECT_TRUE(stream.guards_are_intact());
}

TEST_P(DenseProduct, SumsOnesExactlyAndShowsNan) {
  const int inputs = 16384;
  for (const Format format : {Format::kF32, Format::kF16, Format::kBf16}) {
    Weights w(format, 2, inputs);
    Rows x(1, inputs);
    for (int k = 0; k < inputs; ++k) {
      w.set(0, k, 1);
      w.set(1, k, 1);
      x.row(0)[k] = 1;
    }
    w.set(1, 9, std::nanf(""));
    Rows y(1, 2);
    GetParam().run(make_args(w, inputs, x, y), 0, 1, 0, 2);
    EXPECT_EQ(y.row(0)[0], 16384);
    EXPECT_TRUE(std::isnan(y.row(0)[1]));
  }
}

TEST_P(DenseProduct, NothingToDoWritesNothing) {
  const Weights w(Format::kF32, 3, 4);
  Rows x(2, 4);
  x.fill_normal(67);
  Rows y(2, 3);
  GetParam().run(make_args(w, 4, x, y), 0, 0, 0, 3);
  GetParam().run(make_args(w, 4, x, y), 0, 2, 1, 1);
  EXPECT_TRUE(std::isnan(y.row(0)[0]));
  EXPECT_TRUE(std::isnan(y.row(1)[1]));
  GetParam().run(make_args(w, 0, x, y), 0, 2, 0, 3);  // no inputs: a sum of nothing
  EXPECT_EQ(y.row(1)[2], 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, DenseProduct,
                         ::testing::ValuesIn(dense_product_variants().begin(),
                                             dense_product_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

TEST(DenseEmbed, DecodesRowsAndRefusesIdsOutOfRange) {
  for (const Format format : {Format::kF32, Format::kF16, Format::kBf16}) {
    const Weights w(format, 5, 6);
    Rows y(3, 6);
    const std::int32_t ids[] = {4, 0, 4};
    EXPECT_TRUE(
        dense_embed(format, w.data.data(), w.stride, 5, 6, ids, y.data(), y.stride(), 0, 3));
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < 6; ++k) {
        EXPECT_EQ(y.row(i)[k], reference::decode_weight(format, w.row(ids[i]), k));
      }
    }
    EXPECT_TRUE(y.guards_are_intact());
    const std::int32_t outside[] = {5, -1};
    EXPECT_FALSE(
        dense_embed(format, w.data.data(), w.stride, 5, 6, outside, y.data(), y.stride(), 0, 1));
    EXPECT_EQ(y.row(0)[5], 0);
    EXPECT_FALSE(
        dense_embed(format, w.data.data(), w.stride, 5, 6, outside, y.data(), y.stride(), 1, 2));
    EXPECT_EQ(y.row(1)[0], 0);
  }
}

}  // namespace
}  // namespace tern::cpu
