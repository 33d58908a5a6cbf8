// Plans and uploads for CUDA: refusals by name, placements, layouts, progress, cancel, damage.
#include <gtest/gtest.h>

#include <cstring>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/fake/fake_driver_test.h"
#include "backend/cuda/plan/cuda_plan.h"
#include "program/builder.h"
#include "program/passes/passes.h"

namespace tern::cuda {
namespace {

using program::WeightId;
using quant::Format;

backend::DeviceProfile h200() {
  backend::DeviceProfile p;
  p.name = "cuda0";
  p.kind = backend::DeviceKind::kCuda;
  p.architecture = "sm_90";
  p.cores = 132;
  return p;
}

class CudaPlanTest : public testing::Test {
 protected:
  WeightId add(const char* name, Format format, std::int64_t rows, std::int64_t inputs, int uses) {
    return set_.add({name, format, rows, inputs, static_cast<std::uint8_t>(uses), {}});
  }
  Result<std::shared_ptr<const backend::Plan>> plan(program::Builder&& b,
                                                    const backend::DeviceProfile& profile = h200(),
                                                    std::vector<std::string> pins = {}) {
    backend::PlanOptions options;
    options.limits = {4, 2, 2, 4};
    options.pins = std::move(pins);
    return CudaBackend().plan(
        program::run_passes(std::move(b).finish(), program::Activations::kI12), profile, options);
  }
  program::WeightSet set_;
};

TEST_F(CudaPlanTest, AnOpWithoutAKernelIsRefusedWithOpPlaceAndShapes) {
  const WeightId table = add("table", Format::kQ1G128, 96, 128, program::kUseLookup);
  const WeightId dense = add("dense", Format::kF16, 64, 128, program::kUseMatmul);
  program::Builder b("refused", {4, 1024}, 2, set_);
  b.region("layer", 3);
  b.output("y", b.linear(b.embed(table), dense));
  const auto result = plan(std::move(b));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kUnsupported);
  const std::string message = result.error().message();
  for (const char* part : {"linear in layer 3", "[rows, 128]", "64", "float rows", "--device cpu"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

TEST_F(CudaPlanTest, ADeviceThatIsTooOldIsRefusedForTheOpThatNeedsMore) {
  const WeightId table = add("table", Format::kQ1G128, 96, 128, program::kUseLookup);
  const WeightId w = add("w", Format::kQ1G128, 64, 128, program::kUseMatmul);
  program::Builder b("old", {4, 1024}, 2, set_);
  b.region("layer", 0);
  b.output("y", b.linear(b.embed(table), w));
  backend::DeviceProfile old = h200();
  old.architecture = "sm_75";
  const auto result = plan(std::move(b), old);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("sm_80"), std::string::npos) << result.error().message();
}

TEST_F(CudaPlanTest, PlansNeedNoHardwareAndNameKernelAndReason) {
  const WeightId table = add("table", Format::kQ1G128, 96, 128, program::kUseLookup);
  const WeightId norm = add("norm", Format::kF32, 1, 128, program::kUseVector);
  const WeightId w = add("w", Format::kQ1G128, 64, 128, program::kUseMatmul);
  program::Builder b("small", {4, 1024}, 2, set_);
  b.region("layer", 0);
  const auto y = b.linear(b.rms_norm(b.embed(table), norm, 1e-6F), w);
  b.output("y", b.slice(y, 32, 16));
  const auto result = plan(std::move(b), h200(), {"gemv_q1_g128:b1_mma"}).value();
  const auto& p = dynamic_cast<const CudaPlan&>(*result);
  ASSERT_EQ(p.steps.size(), p.program.ops.size());
  EXPECT_EQ(p.steps[0].kernel, "embed:q1_g128");
  EXPECT_EQ(p.steps[3].kernel, "gemv_q1_g128:b1_mma");
  EXPECT_NE(p.steps[3].reason.find("pinned"), std::string::npos);
  EXPECT_EQ(p.steps[4].kernel, "view");
  // The slice lies inside of what it is a view of.
  const program::ValueId slice = p.program.outputs[0].value;
  EXPECT_EQ(p.placements[slice].offset, p.placements[p.views[slice].root].offset + 32 * 4);
  EXPECT_EQ(p.placements[slice].bytes, 0U);
  EXPECT_GT(p.arena_bytes, p.status_offset);
  // Two values that live at once never overlap.
  for (std::size_t a = 0; a < p.placements.size(); ++a) EXPECT_EQ(p.placements[a].offset % 4, 0U);
}

TEST_F(CudaPlanTest, AnUnknownPinIsAnError) {
  const WeightId table = add("table", Format::kQ1G128, 96, 128, program::kUseLookup);
  program::Builder b("pin", {4, 1024}, 2, set_);
  b.region("layer", 0);
  b.output("y", b.embed(table));
  const auto result = plan(std::move(b), h200(), {"embed:fast"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kUsage);
}

TEST_F(CudaPlanTest, BucketsRoundUpToPowersOfTwo) {
  const CudaBackend backend;
  const program::Bucket limits{64, 65536};
  EXPECT_EQ(backend.bucket({3, 500}, limits), (program::Bucket{4, 1024}));
  EXPECT_EQ(backend.bucket({33, 5000}, limits).rows, 64);
}

class CudaUploadTest : public testing::Test {
 protected:
  // A joined matrix of two parts that meet inside of a tile.
  CudaUploadTest() : first_(21 * 2 * 18), second_(14 * 2 * 18) {
    for (std::size_t i = 0; i < first_.size(); ++i)
      first_[i] = i % 18 == 1 ? std::byte{0x20} : static_cast<std::byte>(i * 7);
    for (std::size_t i = 0; i < second_.size(); ++i)
      second_[i] = i % 18 == 1 ? std::byte{0x24} : static_cast<std::byte>(i * 11);
    set_.add({"qkv",
              Format::kQ1G128,
              35,
              256,
              program::kUseMatmul,
              {{"q", first_, 21}, {"kv", second_, 14}}});
  }
  Result<std::shared_ptr<const CudaWeights>> upload(const ProgressFn& progress = {},
                                                    const CancelToken& cancel = {}) {
    TERN_ASSIGN(auto context, Context::open(fake_.api(), 0));
    return CudaWeights::make(set_, context, progress, cancel, 4 * 2 * 576);
  }
  FakeDriver fake_;
  std::vector<std::byte> first_, second_;
  program::WeightSet set_;
};

TEST_F(CudaUploadTest, PartsThatMeetInsideOfATileAreOneMatrix) {
  const auto weights = upload().value();
  std::vector<std::byte> joined = first_;
  joined.insert(joined.end(), second_.begin(), second_.end());
  std::vector<std::byte> expected(tiles16_bytes(35, 256));
  ASSERT_EQ(repack_tiles16(joined.data(), 256, 35, expected.data()), -1);
  EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(weights->address()), expected.data(),
                        expected.size()),
            0);
  EXPECT_GE(fake_.calls("cuMemcpyHtoDAsync"), 2) << "the ring holds less than the matrix";
}

TEST_F(CudaUploadTest, C73_PinnedMemoryStaysBelowTheRing) {
  (void)upload().value();
  EXPECT_EQ(fake_.calls("cuMemHostAlloc"), 1);
}

TEST_F(CudaUploadTest, AScaleThatIsNotFiniteNamesTensorAndBlock) {
  const std::uint16_t nan = 0x7E00;
  std::memcpy(&second_[(3 * 2 + 1) * 18], &nan, 2);
  const auto result = upload();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidFile);
  EXPECT_NE(result.error().message().find("'kv' block 7"), std::string::npos)
      << result.error().message();
  EXPECT_EQ(fake_.allocated_bytes(), 0U);
}

TEST_F(CudaUploadTest, ProgressCountsBytesAndCancelStops) {
  std::uint64_t last = 0;
  std::uint64_t total = 0;
  (void)upload([&](const Progress& p) {
    last = p.done;
    total = p.total;
  }).value();
  EXPECT_EQ(last, first_.size() + second_.size());
  EXPECT_EQ(total, last);
  const CancelToken cancel = CancelToken::make();
  cancel.request();
  EXPECT_EQ(upload({}, cancel).error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(fake_.allocated_bytes(), 0U);
}

TEST_F(CudaUploadTest, AWeightWithoutALayoutIsNamed) {
  set_.add({"blk.0.w", Format::kQ4_0, 32, 64, program::kUseMatmul, {}});
  const auto result = upload();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(result.error().message().find("blk.0.w"), std::string::npos);
}

TEST_F(CudaUploadTest, TheEstimateIsWhatAnUploadTakes) {
  const auto weights = upload().value();
  const backend::ResidentEstimate estimate = CudaBackend().estimate(set_, h200());
  EXPECT_EQ(estimate.bytes, weights->bytes());
  EXPECT_EQ(estimate.layouts[0], "tiles16 q1_g128");
}

}  // namespace
}  // namespace tern::cuda
