// OpenBLAS inside a step: the numbers of the own kernel within the bounds of a float sum, the same
// bits every time, and weights that were laid out for the kernel that is pinned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_plan.h"
#include "program/builder.h"
#include "program/passes/passes.h"
#include "quant/codec.h"

namespace tern::cpu {
namespace {

using quant::Format;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kHidden = 256;
constexpr std::int64_t kWide = 384;
constexpr std::int64_t kVocabulary = 96;
constexpr int kRows = 64;

// embed, norm, a product with a bias, one with a residual, head: all matrices of one format.
class VendorProduct : public ::testing::Test {
 protected:
  void make(Format format) {
    storage_.clear();
    storage_.reserve(16);
    set_ = {};
    std::mt19937 random(19);
    const auto add = [&](const char* name, Format f, std::int64_t rows, std::int64_t inputs,
                         std::uint8_t uses) {
      std::normal_distribution<float> normal(0, 0.1F);
      std::vector<float> values(static_cast<std::size_t>(rows * inputs));
      for (float& v : values) v = normal(random);
      auto& bytes = storage_.emplace_back(quant::bytes_for(f, values.size()));
      const auto row_bytes = static_cast<std::int64_t>(bytes.size()) / rows;
      for (std::int64_t r = 0; r < rows; ++r)
        quant::encode_row(f, values.data() + r * inputs, inputs, bytes.data() + r * row_bytes)
            .value();
      return set_.add(
          {name, f, rows, inputs, uses, {{name, bytes, uses == program::kUseVector ? 1 : rows}}});
    };
    const auto table =
        add("table", format, kVocabulary, kHidden, program::kUseLookup | program::kUseMatmul);
    const auto norm = add("norm", Format::kF32, 1, kHidden, program::kUseVector);
    const auto bias = add("bias", Format::kF32, 1, kWide, program::kUseVector);
    const auto up = add("up", format, kWide, kHidden, program::kUseMatmul);
    const auto down = add("down", format, kHidden, kWide, program::kUseMatmul);
    program::Builder b("test", {kRows, 1024}, kRows, set_);
    b.region("layer", 0);
    const auto x = b.embed(table);
    const auto wide = b.linear(b.rms_norm(x, norm, 1e-6F), up, bias);
    const auto y = b.add(x, b.linear(wide, down));
    b.region("head");
    b.output("logits", b.linear(b.gather_rows(y), table));
    program_ = program::run_passes(std::move(b).finish(), program::Activations::kI12);
  }

  backend::DeviceProfile profile(int threads) {
    backend::DeviceProfile p = backend_.devices().front();
    p.cores = threads;
    return p;
  }

  std::shared_ptr<const backend::Plan> plan(const std::vector<std::string>& pins, int threads,
                                            bool exact = false) {
    backend::PlanOptions options;
    options.limits = {kRows, 1, kRows, 32};
    options.pins = pins;
    options.exact = exact;
    return backend_.plan(program_, profile(threads), options).value();
  }

  std::vector<float> run(const std::vector<std::string>& pins, int threads, int rows = kRows) {
    const auto device = backend_.open(profile(threads)).value();
    program::WeightSet set = set_;
    set.pins = pins;
    const auto weights = device->upload(set, {}, {}).value();
    EXPECT_EQ(backend_.estimate(set, device->profile()).bytes, weights->bytes());
    const auto made = plan(pins, threads);
    const auto states =
        device->make_states(made->program.states, {.pages = 32, .slots = 0}).value();
    const auto executable = device->load(made, weights, states).value();
    program::BatchBlock batch;
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
    std::vector<std::uint32_t> pages(32);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7 % 96);
    for (std::uint32_t i = 0; i < 32; ++i) pages[i] = i;
    program::BatchSequence s;
    s.row_count = static_cast<std::uint32_t>(rows);
    s.page_count = 32;
    batch.add_sequence(s, ids.data(), pages.data());
    for (std::uint32_t r = 0; r < s.row_count; ++r) batch.output_rows.push_back(r);
    const auto submission = device->submit(*executable, batch, {}).value();
    EXPECT_TRUE(device->wait(*executable, submission, backend::kNoDeadline).ok());
    const backend::OutputRows out = device->output(*executable, submission, 0).value();
    std::vector<float> values;
    for (std::int64_t r = 0; r < out.rows; ++r)
      values.insert(values.end(), out.row(r).begin(), out.row(r).end());
    return values;
  }

  CpuBackend backend_;
  std::vector<std::vector<std::byte>> storage_;
  program::WeightSet set_;
  program::Program program_;
};

const std::vector<std::string> kPinVendor = {"dense_product:openblas"};
const std::vector<std::string> kPinOwn = {"dense_product:avx2"};

#define SKIP_WITHOUT_OPENBLAS()                  \
  if (backend_.devices().front().vendor.empty()) \
  GTEST_SKIP() << "libopenblas is not on this machine"

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

TEST_F(VendorProduct, GivesTheNumbersOfTheOwnKernelAndTheSameBitsEveryTime) {
  SKIP_WITHOUT_OPENBLAS();
  for (const Format format : {Format::kF32, Format::kF16, Format::kBf16}) {
    make(format);
    const std::vector<float> own = run(kPinOwn, 2);
    const std::vector<float> vendor = run(kPinVendor, 2);
    ASSERT_EQ(own.size(), vendor.size());
    double largest = 0;
    double error = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      ASSERT_TRUE(std::isfinite(vendor[i]));
      largest = std::max(largest, std::fabs(double{own[i]}));
      error = std::max(error, std::fabs(double{own[i]} - vendor[i]));
    }
    EXPECT_GT(largest, 0.05) << "the reference is large enough to differ from";
    // Three products of a few hundred terms, f32 sums in another order.
    EXPECT_LT(error, 2e-5 * largest);
    EXPECT_FALSE(same_bits(own, vendor)) << "the pin ran the own kernel";
    EXPECT_TRUE(same_bits(vendor, run(kPinVendor, 2)));
    EXPECT_TRUE(same_bits(vendor, run(kPinVendor, 1))) << "by the number of threads";
  }
}

// W12: weights lie in an allocation of their own, apart from the arena.
TEST_F(VendorProduct, W12_IsEligibleForWeightsOutsideOfTheArena) {
  SKIP_WITHOUT_OPENBLAS();
  make(Format::kF16);
  const auto made = plan(kPinVendor, 2);
  int products = 0;
  for (const backend::PlanStep& step : made->steps)
    for (const backend::KernelForRows& at : step.by_rows) {
      EXPECT_EQ(at.kernel, "dense_product:openblas");
      EXPECT_EQ(at.reason, "pinned");
      ++products;
    }
  EXPECT_EQ(products, 3 * 7) << "three products, buckets 1 to 64";
  EXPECT_TRUE(made->warnings.empty());
}

// BR-31: scratch for what runs, and for nothing else.
TEST_F(VendorProduct, Br31_ScratchIsThatOfTheChosenProducts) {
  make(Format::kF16);
  EXPECT_EQ(plan({"dense_product:reference"}, 2)->scratch_bytes, 0u);
  SKIP_WITHOUT_OPENBLAS();
  EXPECT_GT(plan(kPinVendor, 2)->scratch_bytes, 0u);
}

TEST_F(VendorProduct, ExactRefusesThePinAndSaysWhatRuns) {
  make(Format::kF32);
  const auto made = plan(kPinVendor, 2, true);
  ASSERT_EQ(made->warnings.size(), 1u);
  EXPECT_THAT(made->warnings[0],
              StartsWith("--pin dense_product:openblas cannot be followed: openblas "));
  EXPECT_THAT(made->warnings[0], HasSubstr(" runs instead"));
  for (const backend::PlanStep& step : made->steps)
    EXPECT_THAT(step.kernel, ::testing::Not(HasSubstr("openblas")));
}

TEST_F(VendorProduct, AMachineWithoutTheLibraryPlansWithoutIt) {
  make(Format::kF32);
  backend::DeviceProfile without = profile(2);
  without.vendor.clear();
  backend::PlanOptions options;
  options.limits = {kRows, 1, kRows, 32};
  options.pins = kPinVendor;
  const auto made = backend_.plan(program_, without, options).value();
  ASSERT_EQ(made->warnings.size(), 1u);
  EXPECT_THAT(made->warnings[0], HasSubstr("openblas is not there"));
}

// Every packed kernel of this machine can be pinned, and all give the same bits.
TEST_F(VendorProduct, PackedKernelsArePinnedWithTheirLayout) {
  make(Format::kQ1G128);
  const std::vector<float> usual = run({}, 2);
  int tried = 0;
  for (const PackedVariant& v : packed_variants()) {
    if (!cpu_features().contains(v.needs)) continue;
    const std::vector<std::string> pins = {fmt::format("packed_product:{}", v.name)};
    EXPECT_TRUE(plan(pins, 2)->warnings.empty()) << v.name;
    EXPECT_EQ(plan(pins, 2)->steps.back().kernel, fmt::format("packed_product:{} i12", v.name));
    EXPECT_TRUE(same_bits(usual, run(pins, 2))) << v.name;
    ++tried;
  }
  EXPECT_GE(tried, 1);
}

TEST_F(VendorProduct, WeightsOfAnotherLayoutAreNoWeightsOfThePlan) {
  make(Format::kQ1G128);
  const auto device = backend_.open(profile(1)).value();
  const auto weights = device->upload(set_, {}, {}).value();
  const auto states = device->make_states(program_.states, {.pages = 1, .slots = 0}).value();
  const auto made = plan({"packed_product:lut"}, 1);
  if (static_cast<const CpuPlan&>(*made).tiling == packed_tiling(cpu_features(), {}))
    GTEST_SKIP() << "one layout serves both kernels on this machine";
  EXPECT_FALSE(device->load(made, weights, states).ok());
}

}  // namespace
}  // namespace tern::cpu
