// Every variant of block_product: layout, quantised activations, products bit for bit, f32 products
// in class F.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/kernels/block_product/test_matrix.h"
#include "backend/cpu/kernels/elementwise/test_rows.h"
#include "reference/linear.h"

namespace tern::cpu {
namespace {

using quant::Format;
using testing::Aligned;
using testing::Rows;
using testing::TestMatrix;

constexpr Format kAllFormats[] = {Format::kQ4_0, Format::kQ4_1, Format::kQ8_0};

class BlockProduct : public ::testing::TestWithParam<BlockProductVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
};

// Rows of x, quantised by a variant.
struct Quantised {
  Quantised(const BlockProductVariant& variant, const Rows& x)
      : bytes(block_activation_row_bytes(x.width()) * static_cast<std::uint64_t>(x.rows())),
        memory(bytes) {
    view = {x.width(), memory.data()};
    variant.quantize(x.data(), x.stride(), view, 0, x.rows());
  }
  [[nodiscard]] const std::byte* row(int r) {
    return memory.data() + static_cast<std::uint64_t>(r) * block_activation_row_bytes(view.inputs);
  }
  std::uint64_t bytes;
  Aligned memory;
  BlockActivations view;
};

// One row of activations, read back.
struct Record {
  std::vector<int> q;
  std::vector<float> scale;
};
Record read_record(const std::byte* row, std::int64_t inputs) {
  Record record;
  const int order[] = {0, 2, 1, 3};
  const std::int64_t blocks = inputs / 32;
  for (std::int64_t i = 0; i < inputs; ++i) {
    std::int16_t q = 0;
    std::memcpy(&q, row + 2 * (i / 4 * 4 + order[i % 4]), 2);
    const int hi = std::to_integer<std::int8_t>(row[2 * inputs + i]);
    const int lo = std::to_integer<std::uint8_t>(row[3 * inputs + i]);
    EXPECT_EQ(16 * hi + lo, q);
    EXPECT_LE(lo, 15);
    record.q.push_back(q);
  }
  for (std::int64_t b = 0; b < blocks; ++b) {
    float scale = 0;
    float scaled_sum = 0;
    std::int32_t sum = 0;
    std::memcpy(&scale, row + 4 * inputs + 4 * b, 4);
    std::memcpy(&scaled_sum, row + 4 * inputs + 4 * blocks + 4 * b, 4);
    std::memcpy(&sum, row + 4 * inputs + 8 * blocks + 4 * b, 4);
    int expected = 0;
    for (std::int64_t i = 32 * b; i < 32 * b + 32; ++i)
      expected += record.q[static_cast<std::size_t>(i)];
    EXPECT_EQ(sum, expected);
    const float product = scale * static_cast<float>(sum);
    EXPECT_EQ(testing::ulp_distance(scaled_sum, product), 0);
    record.scale.push_back(scale);
  }
  return record;
}

Record quantise(const BlockProductVariant& variant, const std::vector<float>& x) {
  Rows rows(1, static_cast<std::int64_t>(x.size()));
  std::copy(x.begin(), x.end(), rows.row(0));
  Quantised q(variant, rows);
  return read_record(q.row(0), rows.width());
}

TEST_P(BlockProduct, QuantisesToTwelveBitsPer128WithTiesToEven) {
  std::vector<float> x(192, 0.0F);  // the last group has 64 inputs
  x[0] = 2047;                      // r = 1: the others are their own quotients
  x[1] = 0.5F;
  x[2] = 1.5F;
  x[3] = -2.5F;
  x[4] = -3.5F;
  x[5] = 1023.49F;
  x[127] = -2047;
  x[128] = 4094;  // a = 2
  x[191] = -3;    // -1.5 -> -2
  const Record r = quantise(GetParam(), x);
  const std::vector<int> first = {2047, 0, 2, -2, -4, 1023};
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(r.q[i], first[i]) << i;
  EXPECT_EQ(r.q[127], -2047);
  EXPECT_EQ(r.q[128], 2047);
  EXPECT_EQ(r.q[191], -2);
  EXPECT_EQ(r.scale, (std::vector<float>{1, 1, 1, 1, 2, 2}));
}

TEST_P(BlockProduct, QuantisesZeroTinyAndBadGroups) {
  std::vector<float> x(5 * 128, 0.0F);
  x[3] = -0.0F;
  x[128] = 0x1.fffffep-101F;  // below 2^-100
  x[256] = 0x1p-100F;
  x[384] = 1;
  x[385] = std::nanf("");
  x[512] = 1;
  x[639] = -HUGE_VALF;
  const Record r = quantise(GetParam(), x);
  EXPECT_EQ(r.scale[0], 0);
  EXPECT_EQ(r.scale[4], 0);
  EXPECT_EQ(r.scale[8], 0x1p-100F / 2047);
  EXPECT_EQ(r.q[256], 2047);
  for (const std::size_t block : {12U, 15U, 16U, 19U}) EXPECT_TRUE(std::isnan(r.scale[block]));
  EXPECT_EQ(r.q[384], 0);
  EXPECT_EQ(r.q[512], 0);
}

TEST_P(BlockProduct, QuantisesLikeTheLastVariant) {
  const BlockProductVariant& portable = block_product_variants().back();
  for (const int inputs : {32, 64, 128, 160, 576, 1536}) {
    Rows x(3, inputs);
    x.fill_normal(72, 30);
    x.row(1)[inputs - 1] = 1e30F;
    x.row(2)[5] = 3.4e38F;
    Quantised a(GetParam(), x);
    Quantised b(portable, x);
    for (int r = 0; r < 3; ++r) {
      const Record record = read_record(a.row(r), inputs);
      const Record expected = read_record(b.row(r), inputs);
      EXPECT_EQ(record.q, expected.q) << inputs;
      EXPECT_EQ(record.scale, expected.scale);
    }
  }
}

TEST(BlockLayout, HoldsEveryWeightOnceAndDecodesItExactly) {
  for (const Format format : kAllFormats) {
    for (const int outputs : {1, 7, 8, 9, 19}) {
      const int inputs = 96;
      TestMatrix m(format, outputs, inputs);
      Rows y(outputs, inputs);
      std::vector<std::int32_t> ids;
      for (int n = 0; n < outputs; ++n) ids.push_back(outputs - 1 - n);
      EXPECT_TRUE(block_embed(m.matrix(), ids.data(), y.data(), y.stride(), 0, outputs));
      for (int n = 0; n < outputs; ++n) {
        for (int k = 0; k < inputs; ++k) {
          ASSERT_EQ(y.row(n)[k], reference::decode_weight(format, m.file_row(outputs - 1 - n), k));
        }
      }
      EXPECT_TRUE(y.guards_are_intact());
    }
  }
}

TEST(BlockLayout, TakesAsManyBytesAsTheFileAndRefusesIdsOutOfRange) {
  EXPECT_EQ(block_matrix_bytes(Format::kQ4_0, 16, 64), 16U * 2 * 18);
  EXPECT_EQ(block_matrix_bytes(Format::kQ4_1, 16, 64), 16U * 2 * 20);
  EXPECT_EQ(block_matrix_bytes(Format::kQ8_0, 9, 64), 16U * 2 * 34);
  TestMatrix m(Format::kQ4_1, 9, 32);
  float y[32];
  const std::int32_t ids[] = {9, -1, 8};
  EXPECT_FALSE(block_embed(m.matrix(), ids, y, 0, 0, 1));
  EXPECT_EQ(y[31], 0);
  EXPECT_FALSE(block_embed(m.matrix(), ids, y, 0, 1, 2));
  EXPECT_TRUE(block_embed(m.matrix(), ids, y, 0, 2, 3));
}

BlockProductArgs make_args(TestMatrix& m, const Quantised& q, Rows& y) {
  BlockProductArgs args;
  args.w = m.matrix();
  args.x = q.view;
  args.y = y.data();
  args.y_row_stride = y.stride();
  return args;
}

TEST_P(BlockProduct, GivesTheBitsOfTheLastVariantForRaggedShapes) {
  const BlockProductVariant& portable = block_product_variants().back();
  for (const Format format : kAllFormats) {
    for (const int inputs : {32, 64, 160, 576}) {
      for (const int outputs : {1, 7, 8, 9, 16, 17, 27}) {
        for (const int rows : {1, 2, 3, 4, 5, 7, 8, 9, 35}) {
          if (rows == 35 && inputs != 160) continue;
          TestMatrix m(format, outputs, inputs);
          Rows x(rows, inputs);
          x.fill_normal(73);
          Quantised q(GetParam(), x);
          Rows y(rows, outputs);
          Rows expected(rows, outputs);
          const std::int64_t blocks = (outputs + 7) / 8;
          GetParam().run(make_args(m, q, y), 0, rows, 0, blocks);
          portable.run(make_args(m, q, expected), 0, rows, 0, blocks);
          for (int r = 0; r < rows; ++r) {
            ASSERT_TRUE(testing::same_bits(y.row(r), expected.row(r), outputs))
                << "inputs " << inputs << " outputs " << outputs << " rows " << rows;
          }
          ASSERT_TRUE(y.guards_are_intact());
        }
      }
    }
  }
}

TEST_P(BlockProduct, IsCloseToTheUnquantisedProduct) {
  for (const Format format : kAllFormats) {
    const int inputs = 576;
    const int outputs = 64;
    TestMatrix m(format, outputs, inputs);
    Rows x(2, inputs);
    x.fill_normal(74);
    Quantised q(GetParam(), x);
    Rows y(2, outputs);
    GetParam().run(make_args(m, q, y), 0, 2, 0, outputs / 8);
    double error = 0;
    double total = 0;
    for (int r = 0; r < 2; ++r) {
      for (int n = 0; n < outputs; ++n) {
        const double e = reference::linear_row(format, m.file_row(n), x.row(r), inputs).value;
        error += (y.row(r)[n] - e) * (y.row(r)[n] - e);
        total += e * e;
      }
    }
    EXPECT_GT(total, 1);
    EXPECT_LE(std::sqrt(error / total), 1e-3);  // class Q
  }
}

// All q at +-2047 against all codes at their ends: no 8-, 16- or 32-bit sum may overflow. Every
// product is an integer times d = 1, so that the result is known.
TEST_P(BlockProduct, ExtremesDoNotOverflow) {
  const struct {
    Format format;
    int fill;
    double weight;
  } cases[] = {{Format::kQ4_0, 0xFF, 7},    {Format::kQ4_0, 0x00, -8},  {Format::kQ4_1, 0xFF, 15},
               {Format::kQ8_0, 0x80, -128}, {Format::kQ8_0, 0x7F, 127}, {Format::kQ4_1, 0x00, 0}};
  for (const auto& c : cases) {
    const int inputs = 128;
    TestMatrix m(c.format, 8, inputs);
    for (int n = 0; n < 8; ++n) {
      for (int b = 0; b < inputs / 32; ++b) {
        const int bytes = quant::info(c.format).block_bytes;
        std::byte* block = m.file_row(n) + b * bytes;
        for (int i = 0; i < bytes; ++i) block[i] = static_cast<std::byte>(c.fill);
        testing::put_half(block, 1);
        if (c.format == Format::kQ4_1) testing::put_half(block + 2, 0);
      }
    }
    m.pack();
    for (const float sign : {1.0F, -1.0F}) {
      for (const int rows : {1, 4}) {
        Rows x(rows, inputs);
        for (int r = 0; r < rows; ++r) {
          for (int k = 0; k < inputs; ++k) x.row(r)[k] = sign * 2047;
        }
        Quantised q(GetParam(), x);
        Rows y(rows, 8);
        GetParam().run(make_args(m, q, y), 0, rows, 0, 1);
        for (int r = 0; r < rows; ++r) {
          for (int n = 0; n < 8; ++n) {
            EXPECT_EQ(static_cast<double>(y.row(r)[n]),
                      c.weight * 2047 * inputs * static_cast<double>(sign));
          }
        }
      }
    }
  }
}

TEST_P(BlockProduct, SpecialScalesFollowTheDecoder) {
  for (const Format format : kAllFormats) {
    const int inputs = 64;
    TestMatrix m(format, 8, inputs);
    const float scales[] = {0, 0x1p-24F, -0.5F, 65504, 1, 1, 1, 1};
    for (int n = 0; n < 8; ++n) {
      testing::put_half(m.file_row(n), scales[n]);
      testing::put_half(m.file_row(n) + quant::info(format).block_bytes, scales[n]);
      if (format == Format::kQ4_1) {
        testing::put_half(m.file_row(n) + 2, scales[7 - n]);
        testing::put_half(m.file_row(n) + 22, 0);
      }
    }
    m.pack();
    Rows x(1, inputs);
    for (int k = 0; k < inputs; ++k) x.row(0)[k] = static_cast<float>((k * 37) % 4095 - 2047);
    x.row(0)[0] = 2047;  // both groups have r = 1 and q = x
    Quantised q(GetParam(), x);
    Rows y(1, 8);
    GetParam().run(make_args(m, q, y), 0, 1, 0, 1);
    for (int n = 0; n < 8; ++n) {
      const reference::LinearResult e =
          reference::linear_row(format, m.file_row(n), x.row(0), inputs);
      EXPECT_NEAR(y.row(0)[n], e.value, 4 * std::sqrt(64.0) * 0x1p-24 * e.magnitude + 1e-30) << n;
    }
  }
}

TEST_P(BlockProduct, RowWithNanOrInfGivesNanAndLeavesTheOthersAlone) {
  for (const int rows : {2, 6}) {
    TestMatrix m(Format::kQ4_1, 9, 160);
    Rows x(rows, 160);
    x.fill_normal(75);
    x.row(1)[159] = HUGE_VALF;  // in the short last group
    Quantised q(GetParam(), x);
    Rows y(rows, 9);
    GetParam().run(make_args(m, q, y), 0, rows, 0, 2);
    for (int n = 0; n < 9; ++n) {
      EXPECT_FALSE(std::isnan(y.row(0)[n]));
      EXPECT_TRUE(std::isnan(y.row(1)[n]));
    }
  }
}

TEST_P(BlockProduct, ARowAndARangeOfBlocksAloneGiveTheSameBits) {
  const int rows = 37;
  const int outputs = 43;
  TestMatrix m(Format::kQ4_1, outputs, 96);
  Rows x(rows, 96);
  x.fill_normal(76);
  Quantised q(GetParam(), x);
  for (const bool is_f32 : {false, true}) {
    const BlockProductFn run = is_f32 ? GetParam().run_f32 : GetParam().run;
    Rows whole(rows, outputs);
    Rows parts(rows, outputs);
    BlockProductArgs args = make_args(m, q, whole);
    args.x_f32 = x.data();
    args.x_f32_row_stride = x.stride();
    run(args, 0, rows, 0, 6);
    args.y = parts.data();
    args.y_row_stride = parts.stride();
    for (int r = 0; r < rows; ++r) {
      const int cut = r % 7;
      run(args, r, r + 1, cut, 6);
      run(args, r, r + 1, 0, cut);
      ASSERT_TRUE(testing::same_bits(parts.row(r), whole.row(r), outputs)) << r;
    }
    EXPECT_TRUE(parts.guards_are_intact());
  }
}

TEST_P(BlockProduct, AddsBiasAndResidualInBothForms) {
  const int outputs = 13;
  TestMatrix m(Format::kQ8_0, outputs, 64);
  for (const int rows : {2, 5}) {
    Rows x(rows, 64);
    x.fill_normal(77);
    Quantised q(GetParam(), x);
    Rows bias(1, outputs);
    bias.fill_normal(78);
    for (const bool is_f32 : {false, true}) {
      const BlockProductFn run = is_f32 ? GetParam().run_f32 : GetParam().run;
      Rows plain(rows, outputs);
      Rows stream(rows, outputs, 2);
      stream.fill_normal(79);
      const Rows before = stream;
      BlockProductArgs args = make_args(m, q, plain);
      args.x_f32 = x.data();
      args.x_f32_row_stride = x.stride();
      run(args, 0, rows, 0, 2);
      args.y = stream.data();
      args.y_row_stride = stream.stride();
      args.residual = stream.data();  // in place
      args.residual_row_stride = stream.stride();
      args.bias = bias.row(0);
      run(args, 0, rows, 0, 2);
      for (int r = 0; r < rows; ++r) {
        for (int n = 0; n < outputs; ++n) {
          EXPECT_EQ(stream.row(r)[n], before.row(r)[n] + (plain.row(r)[n] + bias.row(0)[n]));
        }
      }
      EXPECT_TRUE(stream.guards_are_intact());
    }
  }
}

TEST_P(BlockProduct, F32FormStaysInClassF) {
  for (const Format format : kAllFormats) {
    for (const int inputs : {32, 576, 1536}) {
      const int outputs = 19;
      const int rows = 34;
      TestMatrix m(format, outputs, inputs);
      Rows x(rows, inputs);
      x.fill_normal(80);
      Rows y(rows, outputs);
      BlockProductArgs args;
      args.w = m.matrix();
      args.x_f32 = x.data();
      args.x_f32_row_stride = x.stride();
      args.y = y.data();
      args.y_row_stride = y.stride();
      GetParam().run_f32(args, 0, rows, 0, 3);
      for (int r = 0; r < rows; r += 11) {
        for (int n = 0; n < outputs; ++n) {
          const reference::LinearResult e =
              reference::linear_row(format, m.file_row(n), x.row(r), inputs);
          const double bound = 4 * std::sqrt(static_cast<double>(inputs)) * 0x1p-24 * e.magnitude;
          ASSERT_NEAR(y.row(r)[n], e.value, bound);
        }
      }
      EXPECT_TRUE(y.guards_are_intact());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, BlockProduct,
                         ::testing::ValuesIn(block_product_variants().begin(),
                                             block_product_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace tern::cpu
