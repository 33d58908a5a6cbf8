// Tests of what an engine says about its machine.
#include "tern/engine.h"

#include <gtest/gtest.h>

namespace tern {
namespace {

TEST(Engine, EstimatesTheReadBandwidthUnlessItIsStopped) {
  const Engine engine = Engine::create({}).value();
  const Result<double> gbps = engine.estimate_read_gbps({});
  // A machine with less than 1 GiB to spare is not measured.
  if (gbps.ok()) {
    EXPECT_GT(*gbps, 0.01);
    EXPECT_LT(*gbps, 100'000);
  } else {
    EXPECT_EQ(gbps.error().code(), ErrorCode::kOutOfMemory);
  }
  const CancelToken cancel = CancelToken::make();
  cancel.request();
  const Result<double> stopped = engine.estimate_read_gbps(cancel);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code(), gbps.ok() ? ErrorCode::kCancelled : ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace tern
