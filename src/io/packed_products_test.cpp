// The block codecs against golden matrix products: rows of random, extreme, negative and subnormal
// scales, decoded here and multiplied in double, against products that an independent program
// computed in double.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "base/half.h"
#include "io/safetensors.h"
#include "quant/codec.h"

namespace tern::io {
namespace {

struct Case {
  const char* name;  // prefix of the tensors
  quant::Format format;
  std::int64_t inputs;
};
constexpr Case kCases[] = {
    {"q1_0.k1152", quant::Format::kQ1G128, 1152},  {"q2_0.k192", quant::Format::kT2G64, 192},
    {"q2_0.k576", quant::Format::kT2G64, 576},     {"q2_0.k1152", quant::Format::kT2G64, 1152},
    {"pq2_0.k1152", quant::Format::kT2G128, 1152}, {"ptq1_0.k1152", quant::Format::kT1G128, 1152},
    {"tq1_0.k768", quant::Format::kT1G256, 768},   {"tq2_0.k768", quant::Format::kT2G256, 768},
};

class PackedProducts : public testing::Test {
 protected:
  void SetUp() override {
    auto map = FileMap::open(TERN_SOURCE_DIR "/tests/golden/lm/packed_products.safetensors");
    ASSERT_TRUE(map.ok()) << map.error().message();
    auto file = SafetensorsFile::open(std::make_shared<const FileMap>(std::move(*map)));
    ASSERT_TRUE(file.ok()) << file.error().message();
    file_ = std::make_unique<SafetensorsFile>(std::move(*file));
  }
  const SafetensorsTensor& tensor(const std::string& name) const {
    const SafetensorsTensor* found = file_->find(name);
    EXPECT_NE(found, nullptr) << name;
    return *found;
  }
  std::unique_ptr<SafetensorsFile> file_;
};

TEST_F(PackedProducts, DecodedRowsGiveTheGoldenProducts) {
  const std::vector<float> x = tensor("x").values<float>();
  const auto width = static_cast<std::size_t>(tensor("x").shape[1]);
  for (const Case& c : kCases) {
    const SafetensorsTensor& bytes = tensor(std::string(c.name) + ".bytes");
    const auto rows = static_cast<std::size_t>(bytes.shape[0]);
    const auto row_bytes = static_cast<std::size_t>(bytes.shape[1]);
    const auto inputs = static_cast<std::size_t>(c.inputs);
    ASSERT_EQ(row_bytes, quant::bytes_for(c.format, inputs)) << c.name;
    const auto golden = tensor(std::string(c.name) + ".y_float64").values<double>();
    std::vector<float> weights(inputs);
    for (std::size_t r = 0; r < rows; ++r) {
      quant::decode_row(c.format, bytes.bytes.data() + r * row_bytes, c.inputs, weights.data());
      for (const std::size_t column :
           {std::size_t{0}, std::size_t{4}, std::size_t{5}, std::size_t{9}}) {
        double sum = 0;
        double magnitude = 0;
        for (std::size_t k = 0; k < inputs; ++k) {
          const double product = static_cast<double>(weights[k]) * x[column * width + k];
          sum += product;
          magnitude += std::fabs(product);
        }
        // two orders of summation in double differ by at most 2 * inputs * 2^-53 of the magnitudes
        const double bound = 2.0 * static_cast<double>(inputs) * std::ldexp(1.0, -53) * magnitude;
        EXPECT_NEAR(sum, golden[column * rows + r], bound) << c.name << " row " << r;
      }
    }
  }
}

TEST_F(PackedProducts, DecodedCodesGiveTheGoldenIntegers) {
  for (const Case& c : kCases) {
    const SafetensorsTensor& bytes = tensor(std::string(c.name) + ".bytes");
    const SafetensorsTensor& golden = tensor(std::string(c.name) + ".I");
    const auto row_bytes = static_cast<std::size_t>(bytes.shape[1]);
    const auto inputs = static_cast<std::size_t>(c.inputs);
    const auto q = tensor("q.k" + std::to_string(c.inputs)).values<std::int16_t>();
    const auto expected = golden.values<std::int32_t>();
    const auto groups = static_cast<std::size_t>(golden.shape[2]);
    const std::size_t group = inputs / groups;
    std::vector<std::int8_t> codes(inputs);
    std::vector<std::uint16_t> scales(inputs);
    for (std::size_t r = 0; r < 4; ++r) {
      quant::decode_codes_row(c.format, bytes.bytes.data() + r * row_bytes, c.inputs, codes.data(),
                              scales.data());
      for (std::size_t column = 0; column < 10; ++column) {
        for (std::size_t g = 0; g < groups; ++g) {
          std::int32_t sum = 0;
          for (std::size_t k = g * group; k < (g + 1) * group; ++k) {
            sum += codes[k] * q[column * inputs + k];
          }
          ASSERT_EQ(sum, expected[(column * 4 + r) * groups + g])
              << c.name << " row " << r << " column " << column << " group " << g;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tern::io
