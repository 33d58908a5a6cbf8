// gemv_q1_g128 and quantize: bit by bit against the reference, on ragged and hostile shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/parity/metal/expectation.h"
#include "tests/parity/metal/rig.h"

namespace tern::metal_tests {
namespace {

// Every NaN says the same.
void level_nans(const std::vector<std::byte>& expected, std::vector<std::byte>& found,
                std::size_t from) {
  for (std::size_t at = from; at + 4 <= expected.size(); at += 4) {
    float a = 0;
    float b = 0;
    std::memcpy(&a, &expected[at], 4);
    std::memcpy(&b, &found[at], 4);
    if (std::isnan(a) && std::isnan(b)) std::memcpy(&found[at], &expected[at], 4);
  }
}

// Quantises rows on the device and compares whole records and what follows them.
void expect_records(Rig& rig, const std::vector<std::vector<float>>& rows) {
  const auto width = static_cast<std::int64_t>(rows[0].size());
  const metal::RecordLayout layout = metal::record_layout(width);
  const std::uint64_t stride = rows[0].size() + 5;
  const std::uint64_t records = (rows.size() * stride * 4 + 255) / 256 * 256;
  const auto arena = rig.memory(records + (rows.size() + 1) * layout.record_bytes);
  for (std::size_t r = 0; r < rows.size(); ++r) arena->put(r * stride * 4, rows[r]);
  TernQuantizeParams p{};
  p.x_row_stride = stride;
  p.records = records;
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.width = static_cast<tern_u32>(width);
  p.axis = kTernAllRows;
  ASSERT_EQ(rig.run({metal::quantize_launch(p, static_cast<std::uint32_t>(rows.size()))}, *arena,
                    *arena, *arena),
            "");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto expected = expected_record(quantized(rows[r]));
    auto found = arena->get<std::byte>(records + r * layout.record_bytes, layout.record_bytes);
    level_nans(expected, found, layout.scales_offset);
    ASSERT_EQ(found, expected) << "row " << r << " of width " << width;
  }
  const auto after =
      arena->get<std::byte>(records + rows.size() * layout.record_bytes, layout.record_bytes);
  for (const std::byte b : after) ASSERT_EQ(b, std::byte{0xA5}) << "beyond the last record";
}

TEST(MetalKernels, QuantizeEqualsTheReferenceBitForBit) {
  const auto rig = Rig::open();
  std::mt19937 random(1);
  for (const std::int64_t width : {1, 64, 127, 128, 129, 192, 512, 576, 1152, 2560})
    expect_records(*rig, {random_row(width, random), random_row(width, random)});
}

TEST(MetalKernels, QuantizeKeepsTheRuleOnHostileValues) {
  const auto rig = Rig::open();
  std::mt19937 random(2);
  std::vector<std::vector<float>> rows;
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float special :
       {0.0F, -0.0F, inf, -inf, nan, 1e38F, 1e-30F, 0x1p-100F, 0x1p-101F,
        std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()}) {
    rows.push_back(random_row(512, random));
    for (std::size_t k = 0; k < 128; ++k) rows.back()[128 + k] = special;
    rows.push_back(random_row(512, random));
    rows.back()[300] = special;
  }
  rows.emplace_back(512, 0.0F);
  // x * r exactly between two integers: amax 2047 makes r one.
  rows.emplace_back(512, 2047.0F);
  for (std::size_t k = 0; k < 500; ++k) rows.back()[k] = static_cast<float>(k) - 250.5F;
  expect_records(*rig, rows);
}

struct Product {
  std::int64_t outputs, inputs;
  std::uint64_t rows = 1;
  bool has_bias = false;
  bool has_residual = false;
  bool is_extreme = false;   // q = +-2047 everywhere
  bool is_in_place = false;  // y is the residual
};

float expected_value(const Product& t, float sum, float bias, float residual) {
  float y = sum;
  if (t.has_bias) y += bias;
  if (t.has_residual) y += residual;
  return y;
}

// The product of random weights with random rows, with guards around y, bit by bit.
void expect_product(Rig& rig, const Product& t) {
  std::mt19937 random(static_cast<unsigned>(t.outputs * 31 + t.inputs));
  const auto blocks = random_q1(t.outputs, t.inputs, random);
  const auto weight = split_weight(blocks, t.outputs, t.inputs);
  const auto outputs = static_cast<std::uint64_t>(t.outputs);
  const std::uint64_t stride = outputs + 7;
  const metal::RecordLayout layout = metal::record_layout(t.inputs);
  const std::vector<float> bias = random_row(t.outputs, random);
  const std::uint64_t bias_at = (weight.size() + 255) / 256 * 256;
  const auto weights = rig.memory(bias_at + bias.size() * 4);
  weights->put(0, weight);
  weights->put(bias_at, bias);
  const std::uint64_t y_at = t.rows * layout.record_bytes + 256;
  const std::uint64_t residual_at = t.is_in_place ? y_at : y_at + (t.rows + 1) * stride * 4;
  const auto arena = rig.memory(y_at + 2 * (t.rows + 1) * stride * 4);
  std::vector<std::vector<float>> expected;
  std::vector<std::vector<float>> residual;
  for (std::uint64_t r = 0; r < t.rows; ++r) {
    std::vector<float> x = random_row(t.inputs, random);
    if (t.is_extreme)
      for (float& v : x) v = v < 0 ? -2047.0F : 2047.0F;
    const QuantizedRow row = quantized(x);
    arena->put(r * layout.record_bytes, expected_record(row));
    expected.push_back(expected_product(blocks, t.outputs, row));
    residual.push_back(random_row(t.outputs, random));
    if (t.has_residual) arena->put(residual_at + r * stride * 4, residual.back());
  }
  TernGemvParams p{};
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.y = y_at;
  p.y_row_stride = stride;
  p.residual = residual_at;
  p.residual_row_stride = stride;
  p.bias = bias_at;
  p.outputs = static_cast<tern_u32>(outputs);
  p.groups = static_cast<tern_u32>(t.inputs / 128);
  p.axis = kTernAllRows;
  if (t.has_bias) p.flags |= static_cast<tern_u32>(kTernGemvBias);
  if (t.has_residual) p.flags |= static_cast<tern_u32>(kTernGemvResidual);
  ASSERT_EQ(rig.run({metal::gemv_launch(p, static_cast<std::uint32_t>(t.rows))}, *weights, *arena,
                    *arena),
            "");
  const auto before = arena->get<float>(y_at - 256, 64);
  for (const float v : before) ASSERT_TRUE(is_guard(v)) << "before the output";
  double largest = 0;
  for (std::uint64_t r = 0; r < t.rows; ++r) {
    const auto y = arena->get<float>(y_at + r * stride * 4, stride);
    for (std::size_t n = 0; n < outputs; ++n) {
      const float e = expected_value(t, expected[r][n], bias[n], residual[r][n]);
      largest = std::max(largest, std::fabs(static_cast<double>(e)));
      ASSERT_EQ(std::memcmp(&e, &y[n], 4), 0)
          << t.outputs << " x " << t.inputs << " row " << r << " output " << n << ": " << y[n]
          << ", expected " << e;
    }
    for (std::size_t n = outputs; n < stride; ++n) ASSERT_TRUE(is_guard(y[n])) << "beyond a row";
  }
  EXPECT_GT(largest, 1e-3) << "zeros must not pass";
}

TEST(MetalKernels, GemvEqualsTheCanonicalSumOnRaggedShapes) {
  const auto rig = Rig::open();
  for (const std::int64_t outputs : {1, 2, 7, 8, 9, 19})
    for (const std::int64_t inputs : {128, 256, 384, 512, 640, 896, 4096, 4224})
      expect_product(*rig, {outputs, inputs});
  expect_product(*rig, {3, 17408});
}

TEST(MetalKernels, GemvEqualsTheCanonicalSumOfEveryRow) {
  const auto rig = Rig::open();
  for (const std::uint64_t rows : {2U, 7U, 8U, 9U, 12U, 17U}) expect_product(*rig, {11, 640, rows});
}

TEST(MetalKernels, GemvAddsBiasThenResidualWithOneRoundingEach) {
  const auto rig = Rig::open();
  expect_product(*rig, {100, 1024, 3, true, false});
  expect_product(*rig, {100, 1024, 3, false, true});
  expect_product(*rig, {100, 1024, 3, true, true});
  expect_product(*rig, {37, 640, 3, true, true, false, true});
}

TEST(MetalKernels, GemvHoldsTheLargestIntegers) {
  const auto rig = Rig::open();
  expect_product(*rig, {33, 1152, 2, false, false, true});
}

// T6: scales of zero, subnormal, negative, the largest; NaN and Inf in the row show in the result.
TEST(MetalKernels, GemvTellsOfHostileRowsAndScales) {
  const auto rig = Rig::open();
  std::mt19937 random(9);
  const std::int64_t inputs = 512;
  auto blocks = random_q1(4, inputs, random);
  const std::uint16_t scales[] = {0x0000, 0x8001, 0xFBFF, 0x7BFF};
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t g = 0; g < 4; ++g) std::memcpy(&blocks[(row * 4 + g) * 18], &scales[row], 2);
  const auto weights = rig->memory(metal::split_bytes(4, inputs));
  weights->put(0, split_weight(blocks, 4, inputs));
  std::vector<std::vector<float>> rows(2, random_row(inputs, random));
  rows[1][200] = std::numeric_limits<float>::quiet_NaN();
  const metal::RecordLayout layout = metal::record_layout(inputs);
  const auto arena = rig->memory(2 * layout.record_bytes + 64);
  for (std::size_t r = 0; r < 2; ++r)
    arena->put(r * layout.record_bytes, expected_record(quantized(rows[r])));
  TernGemvParams p{};
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.y = 2 * layout.record_bytes;
  p.y_row_stride = 4;
  p.outputs = 4;
  p.groups = 4;
  p.axis = kTernAllRows;
  ASSERT_EQ(rig->run({metal::gemv_launch(p, 2)}, *weights, *arena, *arena), "");
  const auto y = arena->get<float>(p.y, 8);
  const auto expected = expected_product(blocks, 4, quantized(rows[0]));
  for (std::size_t n : {0U, 2U, 3U}) EXPECT_EQ(y[n], expected[n]);
  EXPECT_LE(std::fabs(static_cast<double>(y[1])), 1e-2);  // a subnormal p may be flushed
  for (std::size_t n = 4; n < 8; ++n) EXPECT_TRUE(std::isnan(y[n]));
}

// The rows that a block says are there are written, and no others.
TEST(MetalKernels, RowsBeyondTheStepAreLeftAlone) {
  const auto rig = Rig::open();
  std::mt19937 random(10);
  const auto blocks = random_q1(10, 256, random);
  const auto weights = rig->memory(metal::split_bytes(10, 256));
  weights->put(0, split_weight(blocks, 10, 256));
  const metal::RecordLayout layout = metal::record_layout(256);
  const auto arena = rig->memory(4 * layout.record_bytes + 4 * 40);
  for (std::size_t r = 0; r < 4; ++r)
    arena->put(r * layout.record_bytes, expected_record(quantized(random_row(256, random))));
  const auto block = rig->memory(256);
  block->put(0, std::vector<std::uint32_t>{2, 1, 3, 0});
  TernGemvParams p{};
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.y = 4 * layout.record_bytes;
  p.y_row_stride = 10;
  p.outputs = 10;
  p.groups = 2;
  p.axis = kTernRows;
  ASSERT_EQ(rig->run({metal::gemv_launch(p, 4)}, *weights, *arena, *block), "");
  auto y = arena->get<float>(p.y, 40);
  for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(is_guard(y[i]), i >= 20) << i;
  p.axis = kTernOutputRows;
  ASSERT_EQ(rig->run({metal::gemv_launch(p, 4)}, *weights, *arena, *block), "");
  y = arena->get<float>(p.y, 40);
  for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(is_guard(y[i]), i >= 30) << i;
}

}  // namespace
}  // namespace tern::metal_tests
