#include "tests/parity/metal/vendor_rig.h"

#include <map>

#include "backend/metal/device/commands.h"
#include "backend/metal/device/pipelines.h"
#include "backend/metal/vendor/mps_vendor.h"
#include "tests/parity/metal/rig.h"

namespace tern::metal_tests {
namespace {

// Host memory of a problem and what stands for it on the device.
class Moved {
 public:
  explicit Moved(metal::Context& context) : context_(context) {}

  Result<backend::GemmProblem> to_device(const backend::GemmProblem& problem) {
    backend::GemmProblem p = problem;
    for (backend::Operand* o : {&p.a, &p.b, &p.c, &p.d}) TERN_TRY(move(o->memory));
    if (p.epilogue.bias) TERN_TRY(move(p.epilogue.bias->memory));
    return p;
  }
  void to_host() const {
    for (const auto& [host, memory] : moved_)
      std::memcpy(host->data(), memory->contents(), memory->bytes());
  }

 private:
  Result<void> move(backend::AllocationRef& memory) {
    if (!memory) return {};
    const auto* host = static_cast<const backend::HostAllocation*>(memory.get());
    metal::MemoryRef& moved = moved_[host];
    if (!moved) {
      TERN_ASSIGN(moved, context_.allocate(host->bytes(), "a test's operand"));
      std::memcpy(moved->contents(), host->data(), host->bytes());
    }
    memory = moved;
    return {};
  }
  metal::Context& context_;
  std::map<const backend::HostAllocation*, metal::MemoryRef> moved_;
};

class MpsRig final : public VendorRig {
 public:
  explicit MpsRig(std::shared_ptr<metal::Context> context)
      : context_(std::move(context)),
        pipelines_(std::make_shared<metal::Pipelines>(context_, "")),
        bridge_(gpu::make_vendor_bridge(metal::MpsVendor::make(context_, pipelines_).value(),
                                        std::make_shared<gpu::ActiveThreads>())) {}

  Result<ProductRun> run(const backend::GemmProblem& problem, int times, int own) override {
    @autoreleasepool {
      Moved moved(*context_);
      TERN_ASSIGN(const backend::GemmProblem p, moved.to_device(problem));
      TERN_ASSIGN(const backend::GemmPlan plan, bridge_->plan(p));
      TERN_ASSIGN(const auto commands, metal::Commands::begin(context_, "products"));
      if (plan.workspace_bytes > 0) {
        TERN_ASSIGN(metal::MemoryRef workspace,
                    context_->allocate(plan.workspace_bytes, "a test's workspace"));
        commands->set_workspace(std::move(workspace));
      }
      TERN_ASSIGN(const metal::MemoryRef scratch, context_->allocate(4096, "a test's scratch"));
      for (int i = 0; i < times; ++i) {
        TERN_TRY(append_own(*commands, scratch, own));
        TERN_TRY(bridge_->encode(plan, *commands));
      }
      TERN_TRY(append_own(*commands, scratch, own));
      const metal::CompletionRef completion = commands->commit();
      TERN_TRY(completion->wait());
      moved.to_host();
      return ProductRun{commands->encoders(), plan.launches()};
    }
  }
  gpu::VendorBridge& bridge() override { return *bridge_; }

 private:
  Result<void> append_own(metal::Commands& commands, const metal::MemoryRef& scratch, int own) {
    TernReadParams p{};
    p.vectors = 64;
    p.sink = 2048;
    for (int i = 0; i < own; ++i) {
      TERN_ASSIGN(const id<MTLComputePipelineState> state,
                  pipelines_->pipeline(metal::KernelId::kReadBytes));
      TERN_TRY(commands.dispatch(state, metal::read_launch(p, 1),
                                 {[&](std::uint32_t) { return scratch->buffer(); },
                                  scratch->buffer(), scratch->buffer()}));
    }
    return {};
  }

  std::shared_ptr<metal::Context> context_;
  std::shared_ptr<metal::Pipelines> pipelines_;
  std::unique_ptr<gpu::VendorBridge> bridge_;
};

}  // namespace

std::unique_ptr<VendorRig> VendorRig::open() {
  return std::make_unique<MpsRig>(metal::Context::open(test_options()).value());
}

}  // namespace tern::metal_tests
