// Packed products: repack, activations and every variant against the scalar formulas, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backend/cpu/kernels/packed/packed.h"
#include "base/half.h"
#include "quant/codec.h"
#include "reference/packed_product.h"
#include "reference/quantize_i12.h"

namespace tern::cpu {
namespace {

using quant::Format;

constexpr std::array kPackedFormats = {Format::kQ1G128, Format::kT2G64,  Format::kT2G128,
                                       Format::kT1G128, Format::kT1G256, Format::kT2G256};

// Bytes aligned to 64 with a guard of 64 bytes behind them. Moves keep the address, copies would
// not.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t size, std::byte fill = std::byte{0xcd})
      : size_(size), storage_(size + 2 * kGuardBytes, fill) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    offset_ = (64 - address % 64) % 64;  // at most 63, so that the guard ends within the storage
    std::memset(data() + size_, kGuardByte, kGuardBytes);
  }
  AlignedBytes(AlignedBytes&&) = default;
  std::byte* data() { return storage_.data() + offset_; }
  const std::byte* data() const { return storage_.data() + offset_; }
  bool guard_is_whole() const {
    for (std::size_t i = 0; i < kGuardBytes; ++i) {
      if (data()[size_ + i] != std::byte{kGuardByte}) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuardBytes = 64;
  static constexpr unsigned char kGuardByte = 0x5a;
  std::size_t size_;
  std::vector<std::byte> storage_;
  std::size_t offset_ = 0;
};

enum class Scales { kOrdinary, kExtreme };

// A matrix as a file would hold it, and the same decoded by the codec of quant/.
struct Matrix {
  Format format;
  std::int64_t rows;
  std::int64_t inputs;
  std::vector<std::byte> bytes;  // first row at `offset`
  std::int64_t offset = 0;       // misaligns the source
  std::int64_t row_bytes = 0;
  int group = 0;                   // of the packed form
  std::vector<std::int8_t> codes;  // [rows][inputs]
  std::vector<float> scales;       // [rows][inputs / group]
  bool has_code3 = false;

  PackedSource source() const { return {format, inputs, bytes.data() + offset, row_bytes}; }
  std::span<const std::int8_t> row_codes(std::int64_t r) const {
    return {codes.data() + r * inputs, static_cast<std::size_t>(inputs)};
  }
  std::span<const float> row_scales(std::int64_t r) const {
    return {scales.data() + r * (inputs / group), static_cast<std::size_t>(inputs / group)};
  }
};

int scale_byte(Format format) {
  switch (format) {
    case Format::kT1G128:
      return 26;
    case Format::kT1G256:
      return 52;
    case Format::kT2G256:
      return 64;
    default:
      return 0;
  }
}

bool is_two_bit(Format f) {
  return f == Format::kT2G64 || f == Format::kT2G128 || f == Format::kT2G256;
}

void decode_with_codec(Matrix& m) {
  const int file_group = quant::info(m.format).group;
  m.group = file_group == 64 ? 64 : 128;
  m.codes.resize(static_cast<std::size_t>(m.rows * m.inputs));
  m.scales.resize(static_cast<std::size_t>(m.rows * (m.inputs / m.group)));
  std::vector<std::uint16_t> halves(static_cast<std::size_t>(m.inputs / file_group));
  for (std::int64_t r = 0; r < m.rows; ++r) {
    quant::decode_codes_row(m.format, m.source().data + r * m.row_bytes, m.inputs,
                            m.codes.data() + r * m.inputs, halves.data());
    for (std::int64_t g = 0; g < m.inputs / m.group; ++g) {
      m.scales[static_cast<std::size_t>(r * (m.inputs / m.group) + g)] =
          half_to_float(halves[static_cast<std::size_t>(g * m.group / file_group)]);
    }
  }
  for (std::int8_t c : m.codes) m.has_code3 = m.has_code3 || c == 2;
}

// with_code3: for 2-bit formats, leave codes of 3 in.
Matrix random_matrix(Format format, std::int64_t rows, std::int64_t inputs, bool with_code3,
                     Scales kind = Scales::kOrdinary, unsigned seed = 1) {
  Matrix m{
      .format = format, .rows = rows, .inputs = inputs, .bytes = {}, .codes = {}, .scales = {}};
  std::mt19937 random(seed);
  m.offset = static_cast<std::int64_t>(random() % 7);
  const auto packed =
      static_cast<std::int64_t>(quant::bytes_for(format, static_cast<std::uint64_t>(inputs)));
  m.row_bytes = packed + static_cast<std::int64_t>(random() % 3);
  m.bytes.resize(static_cast<std::size_t>(m.offset + rows * m.row_bytes));
  for (std::byte& b : m.bytes) {
    auto v = random() & 0xff;
    if (is_two_bit(format) && !with_code3) v &= ~((v & (v >> 1) & 0x55) << 1);
    b = static_cast<std::byte>(v);
  }
  constexpr float kExtremes[] = {0.0f, -0.0f, 0x1p-24f, -0x3p-24f, 65504.0f, -65504.0f, 0x1p-14f};
  const int block = quant::info(format).block_bytes;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t b = 0; b < packed / block; ++b) {
      const float d = kind == Scales::kExtreme
                          ? kExtremes[random() % std::size(kExtremes)]
                          : (static_cast<float>(random() % 2000) - 500.0f) / 30000.0f;
      const std::uint16_t half = float_to_half(d);
      std::memcpy(m.bytes.data() + m.offset + r * m.row_bytes + b * block + scale_byte(format),
                  &half, 2);
    }
  }
  decode_with_codec(m);
  return m;
}

struct Packed {
  PackedLayout layout;
  AlignedBytes bytes;
  PackedView view() const { return layout.view(bytes.data()); }
};

Packed pack(const Matrix& m, PackedTiling tiling) {
  const PackedScan scan = scan_packed(m.source(), 0, m.rows);
  const PackedLayout layout = packed_layout(m.format, m.rows, m.inputs, scan.has_code3, tiling);
  Packed p{layout, AlignedBytes(layout.bytes())};
  repack(layout, m.source(), 0, m.rows, p.bytes.data(), 0);
  EXPECT_TRUE(p.bytes.guard_is_whole());
  return p;
}

std::vector<float> normal_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, 1.5f);
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& v : x) v = normal(random);
  return x;
}

struct Records {
  ActivationLayout layout;
  AlignedBytes bytes;
  RecordsView view() { return layout.view(bytes.data()); }
};

Records quantize(const PackedVariant& v, const std::vector<float>& x, std::int64_t rows,
                 std::int64_t inputs, ActivationNeeds needs) {
  const ActivationLayout layout = activation_layout(inputs, v.tiling, needs);
  Records records{layout, AlignedBytes(static_cast<std::size_t>(layout.record_bytes * rows))};
  v.quantize({x.data(), inputs, 0, rows, records.view()});
  EXPECT_TRUE(records.bytes.guard_is_whole()) << v.name;
  return records;
}

std::vector<float> expected_product(const Matrix& m, const std::vector<float>& x,
                                    std::int64_t rows) {
  std::vector<float> y(static_cast<std::size_t>(rows * m.rows));
  const auto inputs = static_cast<std::size_t>(m.inputs);
  std::vector<std::int16_t> q(inputs);
  std::vector<float> a((inputs + 127) / 128);
  std::vector<std::int32_t> integers(inputs / static_cast<std::size_t>(m.group));
  for (std::int64_t r = 0; r < rows; ++r) {
    reference::quantize_i12({x.data() + r * m.inputs, inputs}, q, a);
    for (std::int64_t n = 0; n < m.rows; ++n) {
      reference::packed_integers(m.row_codes(n), q, static_cast<std::size_t>(m.group), integers);
      y[static_cast<std::size_t>(r * m.rows + n)] = reference::packed_product(
          integers, m.row_scales(n), a, static_cast<std::size_t>(m.group));
    }
  }
  return y;
}

constexpr float kGuard = -777.25f;

// y with a guarded column on both sides of each row, and a guarded row above and below.
struct Output {
  std::int64_t rows;
  std::int64_t width;
  std::int64_t stride;
  std::vector<float> values;

  Output(std::int64_t r, std::int64_t w)
      : rows(r),
        width(w),
        stride(w + 5),
        values(static_cast<std::size_t>((r + 2) * (w + 5)), kGuard) {}
  float* data() { return values.data() + stride + 2; }
  float at(std::int64_t r, std::int64_t n) const {
    return values[static_cast<std::size_t>((r + 1) * stride + 2 + n)];
  }
  bool guards_are_whole() const {
    for (std::int64_t r = -1; r <= rows; ++r) {
      for (std::int64_t n = -2; n < stride - 2; ++n) {
        if (r >= 0 && r < rows && n >= 0 && n < width) continue;
        if (at(r, n) != kGuard) return false;
      }
    }
    return true;
  }
};

struct ProductOptions {
  const float* residual = nullptr;
  std::int64_t residual_stride = 0;
  std::int64_t block_begin = 0;
  std::int64_t block_end = -1;
};

void multiply(const PackedVariant& v, const Packed& w, Records& records, std::int64_t rows,
              float* y, std::int64_t y_stride, ProductOptions options = {}) {
  AlignedBytes scratch(kPackedScratchBytes, std::byte{0xff});  // NaN
  PackedMatmulArgs args{};
  args.weights = w.view();
  args.records = records.view();
  args.rows = rows;
  args.y = y;
  args.y_stride = y_stride;
  args.residual = options.residual;
  args.residual_stride = options.residual_stride;
  args.block_begin = options.block_begin;
  args.block_end = options.block_end < 0 ? w.layout.row_blocks() : options.block_end;
  args.scratch = scratch.data();
  v.matmul(args);
  EXPECT_TRUE(scratch.guard_is_whole()) << v.name;
}

void expect_same_bits(const Output& y, const std::vector<float>& expected,
                      const std::string& what) {
  ASSERT_TRUE(y.guards_are_whole()) << what;
  for (std::int64_t r = 0; r < y.rows; ++r) {
    for (std::int64_t n = 0; n < y.width; ++n) {
      const float e = expected[static_cast<std::size_t>(r * y.width + n)];
      if (std::isnan(e)) {
        ASSERT_TRUE(std::isnan(y.at(r, n))) << what << " row " << r << " output " << n;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(y.at(r, n)), std::bit_cast<std::uint32_t>(e))
            << what << " row " << r << " output " << n << ": " << y.at(r, n) << " and " << e;
      }
    }
  }
}

void check_product(const PackedVariant& v, const Matrix& m, const std::vector<float>& x,
                   std::int64_t rows) {
  const std::string what = std::string(v.name) + " " + std::string(quant::info(m.format).tag) +
                           " " + std::to_string(rows) + "x" + std::to_string(m.rows) + "x" +
                           std::to_string(m.inputs);
  const Packed w = pack(m, v.tiling);
  Records records = quantize(v, x, rows, m.inputs, needs(w.layout));
  Output y(rows, m.rows);
  multiply(v, w, records, rows, y.data(), y.stride);
  expect_same_bits(y, expected_product(m, x, rows), what);
}

class PackedVariants : public testing::TestWithParam<PackedVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) {
      GTEST_SKIP() << GetParam().name << " needs another CPU";
    }
  }
};

TEST_P(PackedVariants, EqualTheFormulaForEveryFormatAndRaggedRows) {
  for (const Format format : kPackedFormats) {
    for (const std::int64_t rows : {1, 2, 15, 31, 32, 33, 47, 63, 64, 65, 70}) {
      const std::int64_t inputs = quant::info(format).group == 256 ? 768 : 640;
      const Matrix m = random_matrix(format, rows, inputs, rows % 2 == 0);
      check_product(GetParam(), m, normal_values(3 * inputs, 7), 3);
    }
  }
}

TEST_P(PackedVariants, EqualTheFormulaAtEveryDepth) {
  for (const Format format : kPackedFormats) {
    for (const bool code3 : {false, true}) {
      for (const std::int64_t inputs : {64, 128, 192, 256, 384, 512, 576, 768, 1152, 2048, 17408}) {
        if (inputs % quant::info(format).group != 0) continue;
        const Matrix m = random_matrix(format, 37, inputs, code3);
        check_product(GetParam(), m, normal_values(2 * inputs, 11), 2);
      }
    }
  }
}

TEST_P(PackedVariants, EqualTheFormulaForEveryBatch) {
  for (const std::int64_t batch :
       {0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129}) {
    for (const Format format : {Format::kQ1G128, Format::kT2G64, Format::kT1G128}) {
      const Matrix m = random_matrix(format, 45, 640, false);
      check_product(GetParam(), m, normal_values(batch * 640, 13), batch);
    }
  }
}

TEST_P(PackedVariants, RowsOfALargeBatchEqualTheRowAlone) {
  struct Case {
    Format format;
    bool code3;
    std::int64_t batch;
  };
  for (const Case c : {Case{Format::kQ1G128, false, 511}, Case{Format::kT2G128, false, 512},
                       Case{Format::kT2G64, true, 513}}) {
    const Matrix m = random_matrix(c.format, 70, 640, c.code3);
    const Packed w = pack(m, GetParam().tiling);
    const std::vector<float> x = normal_values(c.batch * m.inputs, 17);
    Records records = quantize(GetParam(), x, c.batch, m.inputs, needs(w.layout));
    Output y(c.batch, m.rows);
    multiply(GetParam(), w, records, c.batch, y.data(), y.stride);
    ASSERT_TRUE(y.guards_are_whole());
    for (std::int64_t r = 0; r < c.batch; r += 9) {
      const std::vector<float> row(x.begin() + r * m.inputs, x.begin() + (r + 1) * m.inputs);
      Records one = quantize(GetParam(), row, 1, m.inputs, needs(w.layout));
      Output alone(1, m.rows);
      multiply(GetParam(), w, one, 1, alone.data(), alone.stride);
      for (std::int64_t n = 0; n < m.rows; ++n) ASSERT_EQ(y.at(r, n), alone.at(0, n));
    }
  }
}

TEST_P(PackedVariants, ManyRowBlocksGiveTheFormula) {
  for (const Format format : {Format::kQ1G128, Format::kT2G64}) {
    const Matrix m = random_matrix(format, 2100, 640, false);
    check_product(GetParam(), m, normal_values(6 * 640, 19), 6);
  }
}

// Activations at the ends of their range: every q is +2047 or -2047. The last pattern has the signs
// of a row whose code bytes alternate, four 2-bit weights each, so that every product has one sign.
constexpr std::int64_t kExtremePatterns = 5;
std::vector<float> extreme_activations(std::int64_t inputs) {
  std::vector<float> x;
  for (int pattern = 0; pattern < kExtremePatterns; ++pattern) {
    for (std::int64_t k = 0; k < inputs; ++k) {
      const bool minus = pattern == 1 || (pattern == 2 && k % 2 == 0) ||
                         (pattern == 3 && k % 5 < 2) || (pattern == 4 && k / 4 % 2 == 1);
      x.push_back(minus ? -3.0f : 3.0f);
    }
  }
  return x;
}

// Code bytes of a row: the first at even places of a block, the second at odd ones.
using Fill = std::array<int, 2>;

// Writes fills[r % size] over the codes of row r, for r in [0, rows); scales stay.
void fill_codes(Matrix& m, std::int64_t rows, std::span<const Fill> fills) {
  const int block = quant::info(m.format).block_bytes;
  const int scale = scale_byte(m.format);
  for (std::int64_t r = 0; r < rows; ++r) {
    const Fill& fill = fills[static_cast<std::size_t>(r) % fills.size()];
    std::byte* row = m.bytes.data() + m.offset + r * m.row_bytes;
    for (std::int64_t b = 0; b + block <= m.row_bytes; b += block) {
      for (int i = 0; i < block; ++i) {
        if (i == scale || i == scale + 1) continue;
        row[b + i] = static_cast<std::byte>(fill[static_cast<std::size_t>(i % 2)]);
      }
    }
  }
  m.has_code3 = false;
  decode_with_codec(m);
}

constexpr std::array kAnyFills = {Fill{0x00, 0x00}, Fill{0xff, 0xff}, Fill{0xaa, 0xaa},
                                  Fill{0x55, 0x55}, Fill{0xaa, 0x00}, Fill{0x00, 0xaa},
                                  Fill{0xff, 0x00}, Fill{0x80, 0x80}};
// 2-bit codes without a 3: all -1, all 0, all +1, and bytes of +1 and of -1 in turns. The signed
// counters of the ternary kernels come nearest to their ends here.
constexpr std::array kTernaryFills = {Fill{0x00, 0x00}, Fill{0x55, 0x55}, Fill{0xaa, 0xaa},
                                      Fill{0xaa, 0x00}, Fill{0x00, 0xaa}};

TEST_P(PackedVariants, NothingOverflowsAtTheExtremes) {
  for (const Format format : kPackedFormats) {
    for (const std::int64_t inputs : {768, 17408}) {
      Matrix m = random_matrix(format, 40, inputs, true, Scales::kExtreme);
      fill_codes(m, 32, kAnyFills);  // the others stay random
      check_product(GetParam(), m, extreme_activations(inputs), kExtremePatterns);
    }
  }
}

TEST_P(PackedVariants, NothingOverflowsInTernaryRowsOfOneSign) {
  for (const Format format : {Format::kT2G64, Format::kT2G128, Format::kT2G256}) {
    for (const std::int64_t inputs : {768, 17408}) {
      Matrix m = random_matrix(format, 35, inputs, false);
      fill_codes(m, 35, kTernaryFills);
      ASSERT_FALSE(m.has_code3);
      EXPECT_EQ(m.row_codes(0).front(), -1);
      EXPECT_EQ(m.row_codes(1).front(), 0);
      EXPECT_EQ(m.row_codes(2).front(), 1);
      check_product(GetParam(), m, extreme_activations(inputs), kExtremePatterns);
    }
  }
}

TEST_P(PackedVariants, EveryInputAloneIsMultipliedByItsOwnWeight) {
  for (const Format format : kPackedFormats) {
    const std::int64_t inputs = 256;
    const Matrix m = random_matrix(format, 33, inputs, true, Scales::kOrdinary, 5);
    std::vector<float> x(static_cast<std::size_t>(inputs * inputs), 0.0f);
    for (std::int64_t k = 0; k < inputs; ++k) x[static_cast<std::size_t>(k * inputs + k)] = 1.0f;
    check_product(GetParam(), m, x, inputs);
  }
}

TEST_P(PackedVariants, NanAndInfiniteActivationsMakeTheirRowNan) {
  const Matrix m = random_matrix(Format::kQ1G128, 35, 512, false);
  std::vector<float> x = normal_values(4 * 512, 23);
  x[200] = std::numeric_limits<float>::quiet_NaN();
  x[512 + 511] = -std::numeric_limits<float>::infinity();
  for (std::size_t k = 1024; k < 1536; ++k) x[k] = 1e-40f;
  const Packed w = pack(m, GetParam().tiling);
  Records records = quantize(GetParam(), x, 4, 512, needs(w.layout));
  Output y(4, 35);
  multiply(GetParam(), w, records, 4, y.data(), y.stride);
  for (std::int64_t n = 0; n < 35; ++n) {
    EXPECT_TRUE(std::isnan(y.at(0, n)));
    EXPECT_TRUE(std::isnan(y.at(1, n)));
    EXPECT_EQ(y.at(2, n), 0.0f);
    EXPECT_TRUE(std::isfinite(y.at(3, n)));
  }
}

TEST_P(PackedVariants, QuantiseAsTheFormulaDoes) {
  for (const std::int64_t inputs : {64, 128, 192, 576, 1152}) {
    std::vector<float> x = normal_values(8 * inputs, 29);
    const auto row = [&](std::int64_t r) { return x.begin() + r * inputs; };
    std::fill(row(1), row(2), 0.0f);
    for (std::int64_t k = 0; k < inputs; ++k) {
      row(2)[k] = (static_cast<float>(k % 64) + 0.5f) * 32.0f;  // ties
      row(3)[k] = k % 2 == 0 ? -0.0f : 1e-39f;                  // subnormal
      row(4)[k] = k % 128 == 7 ? 0x1p-100f : 0x1p-104f;         // at the threshold
    }
    for (std::int64_t k = 0; k < inputs; k += 64) row(2)[k] = 2047.0f;
    row(5)[inputs - 1] = std::numeric_limits<float>::max();
    row(6)[inputs - 1] = std::numeric_limits<float>::quiet_NaN();
    row(7)[0] = std::numeric_limits<float>::infinity();
    Records records =
        quantize(GetParam(), x, 8, inputs, {.subset_tables = true, .ternary_tables = true});
    std::vector<std::int16_t> q(static_cast<std::size_t>(inputs));
    std::vector<float> a(static_cast<std::size_t>((inputs + 127) / 128));
    for (std::int64_t r = 0; r < 8; ++r) {
      reference::quantize_i12({&*row(r), static_cast<std::size_t>(inputs)}, q, a);
      const RecordsView view = records.view();
      const std::byte* record = view.data + r * view.record_bytes;
      EXPECT_EQ(std::memcmp(record + view.q_offset, q.data(), q.size() * 2), 0)
          << inputs << " " << r;
      for (std::size_t g = 0; g < a.size(); ++g) {
        float found;
        std::memcpy(&found, record + view.scales_offset + static_cast<std::int64_t>(g) * 4, 4);
        if (std::isnan(a[g])) {
          EXPECT_TRUE(std::isnan(found)) << inputs << " row " << r;
        } else {
          EXPECT_EQ(found, a[g]) << inputs << " row " << r;
        }
      }
      for (std::size_t half = 0; half < a.size() * 2; ++half) {
        std::int32_t sum = 0;
        for (std::size_t k = half * 64; k < half * 64 + 64 && k < q.size(); ++k) sum += q[k];
        std::int32_t found;
        std::memcpy(&found, record + view.sums_offset + static_cast<std::int64_t>(half) * 4, 4);
        EXPECT_EQ(found, sum) << inputs << " row " << r << " half " << half;
      }
    }
  }
}

TEST_P(PackedVariants, AddTheResidualOnceAndInPlace) {
  const Matrix m = random_matrix(Format::kT2G128, 75, 640, false);
  const std::int64_t rows = 9;
  const std::vector<float> x = normal_values(rows * 640, 31);
  const Packed w = pack(m, GetParam().tiling);
  Records records = quantize(GetParam(), x, rows, 640, needs(w.layout));
  const std::vector<float> residual = normal_values(rows * 80, 37);
  std::vector<float> expected = expected_product(m, x, rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t n = 0; n < 75; ++n) {
      auto& e = expected[static_cast<std::size_t>(r * 75 + n)];
      e = residual[static_cast<std::size_t>(r * 80 + n)] + e;
    }
  }
  Output apart(rows, 75);
  multiply(GetParam(), w, records, rows, apart.data(), apart.stride,
           {.residual = residual.data(), .residual_stride = 80});
  expect_same_bits(apart, expected, "apart");
  Output in_place(rows, 75);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::memcpy(in_place.data() + r * in_place.stride, residual.data() + r * 80, 75 * 4);
  }
  multiply(GetParam(), w, records, rows, in_place.data(), in_place.stride,
           {.residual = in_place.data(), .residual_stride = in_place.stride});
  expect_same_bits(in_place, expected, "in place");
}

TEST_P(PackedVariants, TwoThreadsGiveTheSameBits) {
  const Matrix m = random_matrix(Format::kT1G128, 333, 1152, false);
  const Packed w = pack(m, GetParam().tiling);
  for (const std::int64_t rows : {1, 6}) {
    const std::vector<float> x = normal_values(rows * 1152, 41);
    Records records = quantize(GetParam(), x, rows, 1152, needs(w.layout));
    Output y(rows, 333);
    {
      std::jthread other(
          [&] { multiply(GetParam(), w, records, rows, y.data(), y.stride, {.block_begin = 5}); });
      multiply(GetParam(), w, records, rows, y.data(), y.stride,
               {.block_begin = 0, .block_end = 5});
    }
    expect_same_bits(y, expected_product(m, x, rows), "two threads");
  }
}

void check_float_product(const PackedVariant& v, const Matrix& m, const Packed& w,
                         std::int64_t rows) {
  std::vector<float> x = normal_values(rows * m.inputs, 43);
  x[static_cast<std::size_t>(m.inputs / 2)] = 30000.0f;  // weights of 0 must not feel it
  Output y(rows, m.rows);
  AlignedBytes scratch(kPackedScratchBytes, std::byte{0xff});
  PackedMatmulArgs args{};
  args.weights = w.view();
  args.x = x.data();
  args.x_stride = m.inputs;
  args.rows = rows;
  args.y = y.data();
  args.y_stride = y.stride;
  args.block_end = w.layout.row_blocks();
  args.scratch = scratch.data();
  v.matmul_f32(args);
  ASSERT_TRUE(y.guards_are_whole());
  ASSERT_TRUE(scratch.guard_is_whole()) << v.name;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t n = 0; n < m.rows; ++n) {
      double sum = 0.0;
      double size = 0.0;
      for (std::int64_t k = 0; k < m.inputs; ++k) {
        const double product = double{m.row_scales(n)[static_cast<std::size_t>(k / m.group)]} *
                               m.row_codes(n)[static_cast<std::size_t>(k)] *
                               double{x[static_cast<std::size_t>(r * m.inputs + k)]};
        sum += product;
        size += std::fabs(product);
      }
      const double bound = 4.0 * std::sqrt(static_cast<double>(m.inputs)) * 0x1p-24 * size;
      ASSERT_LE(std::fabs(double{y.at(r, n)} - sum), bound)
          << quant::info(m.format).tag << " " << m.inputs << " row " << r << " output " << n;
    }
  }
}

// Class F: abs(y - ref) <= 4 sqrt(K) 2^-24 sum |w x|, the reference in double.
TEST_P(PackedVariants, FloatActivationsStayWithinTheirBound) {
  for (const Format format : kPackedFormats) {
    for (const bool code3 : {false, true}) {
      if (code3 && !is_two_bit(format)) continue;
      for (const std::int64_t inputs : {64, 576, 768, 2560}) {
        if (inputs % quant::info(format).group != 0) continue;
        const Matrix m = random_matrix(format, 70, inputs, code3);
        const Packed w = pack(m, GetParam().tiling);
        for (const std::int64_t rows : {1, 2, 7}) check_float_product(GetParam(), m, w, rows);
      }
    }
  }
}

TEST_P(PackedVariants, DecodeARowExactly) {
  for (const Format format : kPackedFormats) {
    const Matrix m = random_matrix(format, 67, 768, true, Scales::kExtreme);
    const Packed w = pack(m, GetParam().tiling);
    std::vector<float> out(768 + 2, kGuard);
    std::vector<float> expected(768);
    for (const std::int64_t r : {0, 1, 31, 32, 50, 66}) {
      GetParam().decode_row(w.view(), r, out.data() + 1);
      quant::decode_row(format, m.source().data + r * m.row_bytes, 768, expected.data());
      for (std::size_t k = 0; k < 768; ++k) ASSERT_EQ(out[k + 1], expected[k]);
      EXPECT_EQ(out.front(), kGuard);
      EXPECT_EQ(out.back(), kGuard);
    }
  }
}

TEST_P(PackedVariants, NothingToDoWritesNothing) {
  const Matrix m = random_matrix(Format::kQ1G128, 33, 128, false);
  const Packed w = pack(m, GetParam().tiling);
  Records records = quantize(GetParam(), normal_values(128, 3), 1, 128, needs(w.layout));
  Output y(1, 33);
  multiply(GetParam(), w, records, 0, y.data(), y.stride);
  multiply(GetParam(), w, records, 1, y.data(), y.stride, {.block_begin = 1, .block_end = 1});
  for (std::int64_t n = 0; n < 33; ++n) EXPECT_EQ(y.at(0, n), kGuard);
  EXPECT_TRUE(y.guards_are_whole());
}

INSTANTIATE_TEST_SUITE_P(All, PackedVariants,
                         testing::ValuesIn(packed_variants().begin(), packed_variants().end()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(PackedRepack, PartsAndJoinedSourcesGiveTheSameMatrix) {
  for (const PackedTiling tiling : {PackedTiling::kBytes, PackedTiling::kWords}) {
    for (const Format format : kPackedFormats) {
      const Matrix m = random_matrix(format, 101, 768, false);
      const Packed whole = pack(m, tiling);
      AlignedBytes parts(whole.layout.bytes(), std::byte{0x77});
      // Two sources: rows 0..56 and 57..100, each in two calls.
      const PackedSource second{format, m.inputs, m.source().data + 57 * m.row_bytes, m.row_bytes};
      repack(whole.layout, second, 10, 34, parts.data(), 67);
      repack(whole.layout, m.source(), 40, 17, parts.data(), 40);
      repack(whole.layout, second, 0, 10, parts.data(), 57);
      repack(whole.layout, m.source(), 0, 40, parts.data(), 0);
      EXPECT_TRUE(parts.guard_is_whole());
      EXPECT_EQ(std::memcmp(parts.data(), whole.bytes.data(), whole.layout.bytes()), 0)
          << quant::info(format).tag;
    }
  }
}

TEST(PackedRepack, EveryRowCountIsPaddedWithZeroScales) {
  for (std::int64_t rows = 1; rows <= 70; ++rows) {
    for (const PackedTiling tiling : {PackedTiling::kBytes, PackedTiling::kWords}) {
      const Matrix m = random_matrix(Format::kT2G64, rows, 128, false, Scales::kOrdinary,
                                     static_cast<unsigned>(rows));
      const PackedLayout layout = packed_layout(m.format, rows, 128, false, tiling);
      AlignedBytes bytes(layout.bytes(), std::byte{0x77});
      repack(layout, m.source(), 0, rows, bytes.data(), 0);
      ASSERT_TRUE(bytes.guard_is_whole());
      // A scale of a padding row is 0: count the zero scales of the last block.
      const std::byte* last = bytes.data() + layout.bytes() - 2 * layout.group_bytes();
      int zeros = 0;
      for (int i = 0; i < 32; ++i) {
        std::uint16_t half;
        std::memcpy(&half, last + 2 * i, 2);
        zeros += (half & 0x7fff) == 0 ? 1 : 0;
      }
      ASSERT_GE(zeros, layout.row_blocks() * 32 - rows);
    }
  }
}

TEST(PackedRepack, ReportsTheFirstScaleThatIsNotFinite) {
  for (const Format format : kPackedFormats) {
    Matrix m = random_matrix(format, 50, 768, false);
    const std::int64_t blocks = 768 / quant::info(format).group;
    const auto set = [&](std::int64_t block, std::uint16_t half) {
      std::memcpy(m.bytes.data() + m.offset + block / blocks * m.row_bytes +
                      block % blocks * quant::info(format).block_bytes + scale_byte(format),
                  &half, 2);
    };
    const PackedLayout layout = packed_layout(format, 50, 768, false, PackedTiling::kBytes);
    AlignedBytes bytes(layout.bytes());
    EXPECT_EQ(scan_packed(m.source(), 0, 50).bad_block, -1);
    EXPECT_EQ(repack(layout, m.source(), 0, 50, bytes.data(), 0).bad_block, -1);
    set(40 * blocks + 1, 0x7e00);
    set(33 * blocks + 2, 0xfc00);
    const PackedScan scan = scan_packed(m.source(), 0, 50);
    EXPECT_EQ(scan.bad_block, 33 * blocks + 2);
    EXPECT_FALSE(scan.bad_is_nan);
    EXPECT_EQ(repack(layout, m.source(), 0, 50, bytes.data(), 0).bad_block, 33 * blocks + 2);
    const PackedScan later = scan_packed(m.source(), 34, 16);
    EXPECT_EQ(later.bad_block, 40 * blocks + 1);
    EXPECT_TRUE(later.bad_is_nan);
    EXPECT_EQ(later.merged(scan).bad_block, 33 * blocks + 2);
  }
}

TEST(PackedRepack, SaysWhetherACodeIsThree) {
  for (const Format format : {Format::kT2G64, Format::kT2G128, Format::kT2G256}) {
    Matrix m = random_matrix(format, 40, 768, false);
    const PackedLayout layout = packed_layout(format, 40, 768, false, PackedTiling::kBytes);
    AlignedBytes bytes(layout.bytes());
    EXPECT_FALSE(scan_packed(m.source(), 0, 40).has_code3);
    EXPECT_FALSE(repack(layout, m.source(), 0, 40, bytes.data(), 0).has_code3);
    std::byte* row = m.bytes.data() + m.offset + 39 * m.row_bytes;
    row[5] |= std::byte{0xc0};
    EXPECT_TRUE(scan_packed(m.source(), 0, 40).has_code3);
    EXPECT_TRUE(repack(layout, m.source(), 0, 40, bytes.data(), 0).has_code3);
    EXPECT_FALSE(scan_packed(m.source(), 0, 39).has_code3);
  }
  EXPECT_EQ(packed_layout(Format::kT1G128, 4, 128, true, PackedTiling::kBytes).kind,
            PackedKind::kTernary);
}

TEST(PackedLayouts, HaveTheSizesThatTheDesignStates) {
  using enum PackedTiling;
  // 32 rows x 128 inputs: 64 bytes of scales, 512 per plane.
  EXPECT_EQ(packed_layout(Format::kQ1G128, 32, 128, false, kBytes).bytes(), 576u);
  EXPECT_EQ(packed_layout(Format::kT2G128, 33, 256, false, kBytes).bytes(), 4 * 1088u);
  EXPECT_EQ(packed_layout(Format::kT2G64, 32, 64, true, kWords).bytes(), 576u);
  EXPECT_EQ(packed_layout(Format::kT1G256, 32, 256, false, kWords).bytes(), 2 * (64 + 14 * 64u));
  EXPECT_EQ(packed_layout(Format::kT2G64, 32, 64, false, kWords).bytes(), 512u);
}

TEST(PackedVariantTable, ChoosesByFeaturesAndEndsInTheReference) {
  EXPECT_EQ(select_packed_variant({}).name, "reference");
  EXPECT_EQ(packed_variants().back().name, "reference");
#if defined(__x86_64__)
  const CpuFeatures avx2 = {CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c};
  EXPECT_EQ(select_packed_variant(avx2).name, "lut");
  EXPECT_EQ(select_packed_variant({CpuFeature::kAvx2}).name, "reference");
#endif
}

}  // namespace
}  // namespace tern::cpu
