#include "tests/parity/metal/rig.h"

#include "backend/metal/device/commands.h"
#include "backend/metal/device/pipelines.h"

namespace tern::metal_tests {
namespace {

class BufferMemory final : public Memory {
 public:
  explicit BufferMemory(metal::MemoryRef memory) : memory_(std::move(memory)) {
    data_ = memory_->contents();
    std::memset(data_, 0xA5, memory_->bytes());
  }
  [[nodiscard]] id<MTLBuffer> buffer() const { return memory_->buffer(); }

 private:
  metal::MemoryRef memory_;
};

class MetalRig final : public Rig {
 public:
  explicit MetalRig(std::shared_ptr<metal::Context> context)
      : context_(std::move(context)), pipelines_(context_, "") {}

  std::unique_ptr<Memory> memory(std::uint64_t bytes) override {
    return std::make_unique<BufferMemory>(context_->allocate(bytes, "a test").value());
  }
  std::string run(const std::vector<metal::Launch>& launches, const Memory& weights,
                  const Memory& arena, const Memory& block) override {
    @autoreleasepool {
      const Result<void> result = run_all(launches, weights, arena, block);
      return result.ok() ? std::string() : result.error().message();
    }
  }

 private:
  static id<MTLBuffer> buffer_of(const Memory& memory) {
    return static_cast<const BufferMemory&>(memory).buffer();
  }
  Result<void> run_all(const std::vector<metal::Launch>& launches, const Memory& weights,
                       const Memory& arena, const Memory& block) {
    TERN_ASSIGN(const auto commands, metal::Commands::begin(context_, "a test"));
    const metal::Bases bases{[&](std::uint32_t) { return buffer_of(weights); }, buffer_of(arena),
                             buffer_of(block)};
    for (const metal::Launch& launch : launches) {
      TERN_ASSIGN(const id<MTLComputePipelineState> state, pipelines_.pipeline(launch.kernel));
      TERN_TRY(commands->dispatch(state, launch, bases));
    }
    return commands->commit()->wait();
  }

  std::shared_ptr<metal::Context> context_;
  metal::Pipelines pipelines_;
};

}  // namespace

metal::DeviceOptions test_options() {
  metal::DeviceOptions options;
  options.allows_emulator = true;
  return options;
}

std::unique_ptr<Rig> Rig::open() {
  return std::make_unique<MetalRig>(metal::Context::open(test_options()).value());
}

std::string compile_from_source(metal::KernelId kernel) {
  auto context = metal::Context::open(test_options()).value();
  // A library that is not there: the next tier has to do it.
  metal::Pipelines pipelines(context, "/nowhere.metallib");
  const auto state = pipelines.pipeline(kernel);
  return state.ok() ? std::string() : state.error().message();
}

}  // namespace tern::metal_tests
