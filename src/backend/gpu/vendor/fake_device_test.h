// A fake device for tests: executables are bridges on it, and a product runs to its end.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "backend/gpu/vendor/bridge.h"
#include "backend/gpu/vendor/fake_vendor_test.h"
#include "backend/vendor_gemm_test_problem.h"
#include "base/error.h"

namespace tern::gpu::test {

// A device: its library and its active threads; executables are bridges on it.
struct FakeDevice {
  explicit FakeDevice(std::uint64_t number = 1) : vendor(std::make_shared<FakeVendor>(number)) {}
  [[nodiscard]] std::unique_ptr<VendorBridge> executable(const BridgeBounds& bounds = {}) const {
    return make_vendor_bridge(vendor, threads, bounds);
  }
  std::shared_ptr<FakeVendor> vendor;
  std::shared_ptr<ActiveThreads> threads = std::make_shared<ActiveThreads>();
};

inline Result<void> run(VendorBridge& bridge, backend::test::TestProblem& problem) {
  TERN_ASSIGN(const backend::GemmPlan plan, bridge.plan(problem.problem));
  FakeContext context(problem.problem.d.memory->device(), plan.workspace_bytes);
  TERN_TRY(bridge.encode(plan, context));
  return context.complete();
}

inline testing::AssertionResult is_right(VendorBridge& bridge,
                                         backend::test::TestProblem& problem) {
  problem.restore();
  const Result<void> result = run(bridge, problem);
  if (!result.ok()) return testing::AssertionFailure() << result.error().message();
  return problem.is_right();
}

}  // namespace tern::gpu::test
