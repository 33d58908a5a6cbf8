// gemv_q1_g128 and quantize on a real device: bit by bit against the reference, on ragged shapes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/gpu/gpu_device.h"
#include "tests/gpu/packed_expectation.h"

namespace tern::gpu_tests {
namespace {

class GpuKernels : public testing::Test {
 protected:
  void SetUp() override {
    Result<GpuDevice> device = GpuDevice::open();
    if (!device.ok()) GTEST_SKIP() << device.error().message();
    device_ = std::move(*device);
  }
  GpuDevice device_;
};

std::vector<float> random_row(std::int64_t width, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(width));
  for (float& v : x) v = normal(random);
  return x;
}

// Quantises rows of `rows` on the device and compares whole records.
void expect_records(const GpuDevice& device, const std::vector<std::vector<float>>& rows) {
  const auto width = static_cast<std::int64_t>(rows[0].size());
  const cuda::RecordLayout layout = cuda::record_layout(width);
  const std::uint64_t stride = rows[0].size() + 5;
  Arena arena(device, (1U << 20) + rows.size() * (stride * 4 + layout.record_bytes));
  const std::uint64_t records = (rows.size() * stride * 4 + 255) / 256 * 256;
  for (std::size_t r = 0; r < rows.size(); ++r) arena.put(r * stride * 4, rows[r]);
  TernQuantizeParams p{};
  p.x_row_stride = stride;
  p.records = records;
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.width = static_cast<tern_u32>(width);
  p.axis = kTernAllRows;
  device.run(cuda::quantize_launch(p, static_cast<unsigned>(rows.size())),
             {0, arena.address(), arena.address()});
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto expected = expected_record(quantized(rows[r]));
    auto found = arena.get<std::byte>(records + r * layout.record_bytes, layout.record_bytes);
    // Every NaN says the same.
    for (std::size_t at = layout.scales_offset; at + 4 <= layout.record_bytes; at += 4) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, &expected[at], 4);
      std::memcpy(&b, &found[at], 4);
      if (std::isnan(a) && std::isnan(b)) std::memcpy(&found[at], &expected[at], 4);
    }
    ASSERT_EQ(found, expected) << "row " << r << " of width " << width;
  }
}

TEST_F(GpuKernels, QuantizeEqualsTheReferenceBitForBit) {
  std::mt19937 random(1);
  for (const std::int64_t width : {64, 128, 192, 512, 576, 640, 2560, 4096, 17408})
    expect_records(device_, {random_row(width, random), random_row(width, random)});
}

TEST_F(GpuKernels, QuantizeKeepsTheRuleOnHostileValues) {
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
  expect_records(device_, rows);
}

struct Product {
  std::int64_t outputs, inputs;
  int rows = 1;
  bool has_bias = false;
  bool has_residual = false;
  cuda::GemvGeometry geometry{};  // threads 32: the default
};

// The product of random weights with random rows, with guards around y, bit by bit.
void expect_product(const GpuDevice& device, const Product& t, std::uint64_t weights_at = 0) {
  std::mt19937 random(static_cast<unsigned>(t.outputs * 31 + t.inputs));
  const auto blocks = random_q1(t.outputs, t.inputs, random);
  const auto tiles = tiles16(blocks, t.outputs, t.inputs);
  const auto outputs = static_cast<std::uint64_t>(t.outputs);
  const std::uint64_t stride = outputs + 7;
  const auto rows = static_cast<std::uint64_t>(t.rows);
  const cuda::RecordLayout layout = cuda::record_layout(t.inputs);
  std::vector<float> bias = random_row(t.outputs, random);
  Arena weights(device, weights_at + tiles.size() + 256 + bias.size() * 4);
  const std::uint64_t bias_at = weights_at + (tiles.size() + 255) / 256 * 256;
  weights.put(weights_at, tiles);
  weights.put(bias_at, bias);
  const std::uint64_t y_at = rows * layout.record_bytes + 256;
  const std::uint64_t residual_at = y_at + (rows + 2) * stride * 4;
  Arena arena(device, residual_at + rows * stride * 4);
  std::vector<QuantizedRow> x;
  std::vector<std::vector<float>> residual;
  for (std::uint64_t r = 0; r < rows; ++r) {
    x.push_back(quantized(random_row(t.inputs, random)));
    residual.push_back(random_row(t.outputs, random));
    arena.put(r * layout.record_bytes, expected_record(x.back()));
    arena.put(residual_at + r * stride * 4, residual.back());
  }
  TernGemvParams p{};
  p.weights = weights_at;
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.y = y_at + stride * 4;  // one guard row before, one after
  p.y_row_stride = stride;
  p.residual = residual_at;
  p.residual_row_stride = stride;
  p.bias = bias_at;
  p.outputs = static_cast<tern_u32>(t.outputs);
  p.groups = static_cast<tern_u32>(t.inputs / 128);
  p.axis = kTernAllRows;
  p.flags = static_cast<tern_u32>((t.has_bias ? kTernGemvBias : 0) |
                                  (t.has_residual ? kTernGemvResidual : 0));
  const cuda::GemvGeometry g =
      t.geometry.threads > 32
          ? t.geometry
          : cuda::gemv_geometry(cuda::gemv_variant(t.inputs), t.outputs, t.inputs, device.cores);
  device.run(cuda::gemv_launch(p, static_cast<unsigned>(rows), g),
             {weights.address(), arena.address(), arena.address()});
  const auto y = arena.get<float>(y_at, (rows + 2) * stride);
  int wrong = 0;
  for (std::uint64_t r = 0; r < rows + 2; ++r) {
    const bool is_row = r >= 1 && r <= rows;
    std::vector<float> expected;
    if (is_row) expected = expected_product(blocks, t.outputs, x[r - 1]);
    for (std::uint64_t n = 0; n < stride; ++n) {
      const float found = y[r * stride + n];
      if (!is_row || n >= outputs) {
        EXPECT_TRUE(is_guard(found)) << "guard at row " << r << " column " << n;
        continue;
      }
      float e = expected[n];
      if (t.has_bias) e = e + bias[n];
      if (t.has_residual) e = residual[r - 1][n] + e;
      if (std::memcmp(&e, &found, 4) != 0 && ++wrong <= 3)
        ADD_FAILURE() << t.outputs << " x " << t.inputs << " row " << r - 1 << " output " << n
                      << ": " << found << ", expected " << e;
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(GpuKernels, GemvEqualsTheCanonicalSumOnRaggedShapes) {
  for (const std::int64_t outputs : {1, 15, 16, 17, 35, 48, 1000, 4096})
    for (const std::int64_t inputs : {128, 256, 384, 512, 640, 896, 2048, 2560})
      expect_product(device_, {outputs, inputs});
}

TEST_F(GpuKernels, GemvEqualsTheCanonicalSumOnModelShapes) {
  for (const Product t : {Product{6144, 4096}, Product{24576, 4096}, Product{4096, 12288},
                          Product{5120, 5120}, Product{2000, 17408}, Product{40000, 2048}})
    expect_product(device_, t);
}

TEST_F(GpuKernels, GemvAddsBiasThenResidualWithOneRoundingEach) {
  expect_product(device_, {1000, 1024, 3, true, false});
  expect_product(device_, {1000, 1024, 3, false, true});
  expect_product(device_, {1000, 1024, 3, true, true});
}

TEST_F(GpuKernels, GemvGivesTheSameBitsForEveryGeometry) {
  for (const auto kernel : {cuda::KernelId::kGemvQ1G128, cuda::KernelId::kGemvQ1G128Deep})
    for (const int warps : {1, 2, 5, 8, 16, 24})
      for (const int per_core : {1, 4})
        for (const std::int64_t inputs : {640, 4096, 12288, 17408})
          expect_product(
              device_, {777, inputs, 1, false, false,
                        cuda::gemv_geometry(kernel, 777, inputs, device_.cores, warps, per_core)});
}

// What the checking tools run.
TEST_F(GpuKernels, SmallProductsAndRecords) {
  std::mt19937 random(8);
  expect_records(device_, {random_row(192, random), random_row(192, random)});
  for (const std::int64_t inputs : {128, 640, 2048, 13312})
    expect_product(device_, {37, inputs, 2, true, true});
}

TEST_F(GpuKernels, Br14_WeightsBeyondFourGibibytes) {
  const std::uint64_t gib = std::uint64_t{1} << 30;
  for (const std::uint64_t at : {4 * gib - 288, 4 * gib, 4 * gib + 288, 6 * gib})
    expect_product(device_, {100, 1280}, at);
}

}  // namespace
}  // namespace tern::gpu_tests
