// Golden products of all packed formats (tests/golden/lm/README.md): the scalar formulas and every
// CPU variant, bit for bit.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/kernels/packed/packed.h"
#include "base/aligned_buffer.h"
#include "base/file_map.h"
#include "base/half.h"
#include "io/safetensors.h"
#include "quant/codec.h"
#include "reference/packed_product.h"
#include "reference/quantize_i12.h"

namespace tern {
namespace {

constexpr std::int64_t kRows = 10;     // of x
constexpr std::int64_t kOutputs = 12;  // weight rows
constexpr std::int64_t kStride = 1152;

struct Case {
  const char* name;  // as in the file: "<name>.k<inputs>.bytes"
  quant::Format format;
  std::int64_t inputs;
};

constexpr std::array kCases = {
    Case{"q1_0", quant::Format::kQ1G128, 1152},   Case{"pq2_0", quant::Format::kT2G128, 1152},
    Case{"ptq1_0", quant::Format::kT1G128, 1152}, Case{"q2_0", quant::Format::kT2G64, 1152},
    Case{"q2_0", quant::Format::kT2G64, 192},     Case{"q2_0", quant::Format::kT2G64, 576},
    Case{"tq1_0", quant::Format::kT1G256, 768},   Case{"tq2_0", quant::Format::kT2G256, 768},
};

io::SafetensorsFile open_goldens() {
  auto map =
      FileMap::open(std::string(TERN_SOURCE_DIR) + "/tests/golden/lm/packed_products.safetensors");
  return io::SafetensorsFile::open(std::make_shared<const FileMap>(std::move(map).value())).value();
}

class PackedProducts : public testing::TestWithParam<Case> {
 protected:
  template <class T>
  std::vector<T> get(const std::string& name) const {
    const io::SafetensorsTensor* tensor = goldens_.find(name);
    if (tensor == nullptr) throw std::runtime_error("golden " + name + " is missing");
    return tensor->values<T>();
  }
  std::string key(const char* part) const {
    return std::string(GetParam().name) + ".k" + std::to_string(GetParam().inputs) + "." + part;
  }
  std::string shared_key(const char* part) const {
    return std::string(part) + ".k" + std::to_string(GetParam().inputs);
  }
  static std::int64_t group() { return quant::info(GetParam().format).group == 64 ? 64 : 128; }

  io::SafetensorsFile goldens_ = open_goldens();
  std::vector<float> x_ = get<float>("x");
};

void expect_same_float(float found, float expected, const std::string& where) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(found)) << where;
  } else {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(found), std::bit_cast<std::uint32_t>(expected)) << where;
  }
}

std::string at(std::int64_t row, std::int64_t column) {
  return "row " + std::to_string(row) + " column " + std::to_string(column);
}

TEST_P(PackedProducts, FormulasGiveTheGoldenBits) {
  const auto inputs = static_cast<std::size_t>(GetParam().inputs);
  const auto size = static_cast<std::size_t>(group());
  const std::size_t a_count = (inputs + 127) / 128;
  const std::size_t groups = inputs / size;
  const auto golden_q = get<std::int16_t>(shared_key("q"));
  const auto golden_a = get<float>(shared_key("a"));
  const auto golden_i = get<std::int32_t>(key("I"));
  const auto golden_y = get<float>(key("y"));
  const auto bytes = get<std::uint8_t>(key("bytes"));
  const std::size_t file_group = static_cast<std::size_t>(quant::info(GetParam().format).group);
  std::vector<std::int16_t> q(inputs);
  std::vector<float> a(a_count);
  std::vector<std::int8_t> codes(inputs);
  std::vector<std::uint16_t> halves(inputs / file_group);
  std::vector<float> scales(groups);
  std::vector<std::int32_t> integers(groups);
  for (std::size_t r = 0; r < kRows; ++r) {
    reference::quantize_i12({x_.data() + r * kStride, inputs}, q, a);
    EXPECT_EQ(std::memcmp(q.data(), golden_q.data() + r * inputs, inputs * 2), 0) << "row " << r;
    for (std::size_t g = 0; g < a_count; ++g) {
      expect_same_float(a[g], golden_a[r * a_count + g], "a");
    }
    for (std::size_t n = 0; n < kOutputs; ++n) {
      const auto* row =
          reinterpret_cast<const std::byte*>(bytes.data()) + n * (bytes.size() / kOutputs);
      quant::decode_codes_row(GetParam().format, row, GetParam().inputs, codes.data(),
                              halves.data());
      for (std::size_t g = 0; g < groups; ++g)
        scales[g] = half_to_float(halves[g * size / file_group]);
      reference::packed_integers(codes, q, size, integers);
      for (std::size_t g = 0; n < 4 && g < groups; ++g) {
        EXPECT_EQ(integers[g], golden_i[(r * 4 + n) * groups + g])
            << "row " << r << " output " << n;
      }
      expect_same_float(reference::packed_product(integers, scales, a, size),
                        golden_y[r * kOutputs + n], "y");
    }
  }
}

struct Prepared {
  cpu::PackedLayout layout;
  AlignedBuffer weights;
  AlignedBuffer scratch;
};

Prepared prepare(const Case& c, const cpu::PackedVariant& v,
                 const std::vector<std::uint8_t>& bytes) {
  const cpu::PackedSource source{c.format, c.inputs,
                                 reinterpret_cast<const std::byte*>(bytes.data()),
                                 static_cast<std::int64_t>(bytes.size()) / kOutputs};
  const bool code3 = cpu::scan_packed(source, 0, kOutputs).has_code3;
  const cpu::PackedLayout layout =
      cpu::packed_layout(c.format, kOutputs, c.inputs, code3, v.tiling);
  Prepared p{layout, AlignedBuffer::allocate(layout.bytes()).value(),
             AlignedBuffer::allocate(cpu::kPackedScratchBytes).value()};
  cpu::repack(layout, source, 0, kOutputs, p.weights.data(), 0);
  return p;
}

TEST_P(PackedProducts, EveryVariantGivesTheGoldenBits) {
  const auto bytes = get<std::uint8_t>(key("bytes"));
  const auto golden_y = get<float>(key("y"));
  for (const cpu::PackedVariant& v : cpu::packed_variants()) {
    if (!cpu_features().contains(v.needs)) continue;
    Prepared p = prepare(GetParam(), v, bytes);
    const cpu::ActivationLayout activations =
        cpu::activation_layout(GetParam().inputs, v.tiling, cpu::needs(p.layout));
    AlignedBuffer records =
        AlignedBuffer::allocate(static_cast<std::size_t>(activations.record_bytes * kRows)).value();
    v.quantize({x_.data(), kStride, 0, kRows, activations.view(records.data())});
    std::vector<float> y(kRows * kOutputs, 7.0f);
    cpu::PackedMatmulArgs args{};
    args.weights = p.layout.view(p.weights.data());
    args.records = activations.view(records.data());
    args.rows = kRows;
    args.y = y.data();
    args.y_stride = kOutputs;
    args.block_end = p.layout.row_blocks();
    args.scratch = p.scratch.data();
    v.matmul(args);
    for (std::int64_t r = 0; r < kRows; ++r) {
      for (std::int64_t n = 0; n < kOutputs; ++n) {
        const auto i = static_cast<std::size_t>(r * kOutputs + n);
        expect_same_float(y[i], golden_y[i], std::string(v.name) + " " + at(r, n));
      }
    }
  }
}

// Class F of kernels.md 1.4: abs(y - ref) <= 4 sqrt(K) 2^-24 sum |w x|, for the rows with finite,
// ordinary values.
TEST_P(PackedProducts, FloatActivationsAreWithinTheirBound) {
  const auto bytes = get<std::uint8_t>(key("bytes"));
  const auto golden = get<double>(key("y_float64"));
  const std::int64_t inputs = GetParam().inputs;
  std::vector<float> w(static_cast<std::size_t>(inputs));
  for (const cpu::PackedVariant& v : cpu::packed_variants()) {
    if (!cpu_features().contains(v.needs)) continue;
    Prepared p = prepare(GetParam(), v, bytes);
    std::vector<float> y(kRows * kOutputs, 7.0f);
    cpu::PackedMatmulArgs args{};
    args.weights = p.layout.view(p.weights.data());
    args.x = x_.data();
    args.x_stride = kStride;
    args.rows = kRows;
    args.y = y.data();
    args.y_stride = kOutputs;
    args.block_end = p.layout.row_blocks();
    args.scratch = p.scratch.data();
    v.matmul_f32(args);
    for (const std::int64_t r : {0, 4, 5, 9}) {
      for (std::int64_t n = 0; n < kOutputs; ++n) {
        v.decode_row(args.weights, n, w.data());
        double size = 0.0;
        for (std::int64_t k = 0; k < inputs; ++k) {
          size += std::fabs(double{w[static_cast<std::size_t>(k)]} *
                            double{x_[static_cast<std::size_t>(r * kStride + k)]});
        }
        const double bound = 4.0 * std::sqrt(static_cast<double>(inputs)) * 0x1p-24 * size;
        const auto i = static_cast<std::size_t>(r * kOutputs + n);
        EXPECT_LE(std::fabs(double{y[i]} - golden[i]), bound) << v.name << " " << at(r, n);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Goldens, PackedProducts, testing::ValuesIn(kCases), [](const auto& param) {
  return std::string(param.param.name) + "_k" + std::to_string(param.param.inputs);
});

}  // namespace
}  // namespace tern
