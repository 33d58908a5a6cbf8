#include "backend/metal/device/metal_device.h"

#include <algorithm>
#include <random>

#include "backend/metal/plan/batch_check.h"
#include "base/cancellation.h"

namespace tern::metal {

using Clock = std::chrono::steady_clock;

Result<DeviceInfo> find_device(const DeviceOptions& options) {
  TERN_ASSIGN(const std::shared_ptr<Context> context, Context::open(options));
  return context->describe();
}

Result<std::unique_ptr<backend::Device>> open_device(const backend::DeviceProfile& profile,
                                                     const DeviceOptions& options) {
  TERN_ASSIGN(std::unique_ptr<MetalDevice> device, MetalDevice::open(profile, options));
  return std::unique_ptr<backend::Device>(std::move(device));
}

Result<std::unique_ptr<MetalDevice>> MetalDevice::open(const backend::DeviceProfile& profile,
                                                       const DeviceOptions& options) {
  auto core = std::make_shared<DeviceCore>();
  TERN_ASSIGN(core->context, Context::open(options));
  core->pipelines = std::make_shared<Pipelines>(core->context, options.library_path);
  return std::unique_ptr<MetalDevice>(new MetalDevice(std::move(core), profile, options));
}

Result<std::shared_ptr<const backend::ResidentWeights>> MetalDevice::upload(
    const program::WeightSet& weights, const ProgressFn& progress, const CancelToken& cancel) {
  @autoreleasepool {
    TERN_ASSIGN(std::shared_ptr<const MetalWeights> made,
                MetalWeights::make(weights, *core_->context, progress, cancel));
    return std::shared_ptr<const backend::ResidentWeights>(std::move(made));
  }
}

Result<std::shared_ptr<backend::StatePool>> MetalDevice::make_states(
    const std::vector<program::StateDecl>& states, const backend::PoolSizes& sizes) {
  @autoreleasepool {
    TERN_ASSIGN(std::shared_ptr<MetalStates> made,
                MetalStates::make(states, sizes, *core_->context));
    return std::shared_ptr<backend::StatePool>(std::move(made));
  }
}

Result<std::unique_ptr<backend::Executable>> MetalDevice::load(
    std::shared_ptr<const backend::Plan> plan,
    std::shared_ptr<const backend::ResidentWeights> weights,
    std::shared_ptr<backend::StatePool> states) {
  auto metal_plan = std::dynamic_pointer_cast<const MetalPlan>(std::move(plan));
  auto metal_weights = std::dynamic_pointer_cast<const MetalWeights>(std::move(weights));
  auto metal_states = std::dynamic_pointer_cast<MetalStates>(std::move(states));
  if (!metal_plan || !metal_weights || !metal_states)
    return fail(ErrorCode::kInternal, "[metal] plan, weights or states belong to another backend");
  if (metal_weights->device() != core_->context->id_number())
    return fail(ErrorCode::kInternal, "[metal] the weights lie on another device");
  if (metal_plan->profile.architecture != profile_.architecture)
    return fail(ErrorCode::kInternal, "[metal] the plan was made for {}, this device is {}",
                metal_plan->profile.architecture, profile_.architecture);
  if (metal_states->decls() != metal_plan->program.states)
    return fail(ErrorCode::kInternal, "[metal] the states are not those of the program");
  @autoreleasepool {
    TERN_ASSIGN(std::unique_ptr<MetalExecutable> made,
                MetalExecutable::make(core_, std::move(metal_plan), std::move(metal_weights),
                                      std::move(metal_states)));
    return std::unique_ptr<backend::Executable>(std::move(made));
  }
}

Result<backend::Submission> MetalDevice::submit(backend::Executable& executable,
                                                const program::BatchBlock& batch,
                                                const CancelToken& cancel) {
  auto& e = static_cast<MetalExecutable&>(executable);
  if (cancel.requested()) return fail(ErrorCode::kCancelled, "the step was cancelled");
  TERN_TRY(check_batch(e.metal_plan(), e.states().pages(), batch));
  @autoreleasepool {
    return e.submit(batch);
  }
}

Result<void> MetalDevice::wait(backend::Executable& executable, backend::Submission submission,
                               backend::Deadline deadline) {
  auto& e = static_cast<MetalExecutable&>(executable);
  if (!e.is_in_flight() || e.ticket() != submission.ticket)
    return fail(ErrorCode::kInternal, "[wait] there is no step {}", submission.ticket);
  const bool is_bounded = deadline != backend::kNoDeadline;
  @autoreleasepool {
    const std::optional<Result<void>> ended =
        e.wait_until(is_bounded ? deadline : Clock::now() + options_.longest_wait);
    if (ended) return *ended;
  }
  if (is_bounded) return fail(ErrorCode::kDeadline, "the step has not ended yet");
  return fail(ErrorCode::kDevice,
              "[metal] a step of {} has not ended after {} ms on {} ({} ops); it may hang",
              e.plan().program.name, options_.longest_wait.count(), profile_.name,
              e.plan().steps.size());
}

Result<backend::OutputRows> MetalDevice::output(const backend::Executable& executable,
                                                backend::Submission submission,
                                                std::size_t index) const {
  const auto& e = static_cast<const MetalExecutable&>(executable);
  if (e.ticket() != submission.ticket)
    return fail(ErrorCode::kInternal, "[output] step {} is not the last one", submission.ticket);
  TERN_TRY(core_->context->check_present());
  return e.output(index);
}

Result<std::vector<double>> MetalDevice::time_steps(backend::Executable& executable,
                                                    const program::BatchBlock& batch, int repeats) {
  auto& e = static_cast<MetalExecutable&>(executable);
  TERN_TRY(check_batch(e.metal_plan(), e.states().pages(), batch));
  @autoreleasepool {
    return e.time_steps(batch, repeats);
  }
}

Result<std::string> MetalDevice::first_non_finite(backend::Executable& executable,
                                                  const program::BatchBlock& batch) {
  auto& e = static_cast<MetalExecutable&>(executable);
  TERN_TRY(check_batch(e.metal_plan(), e.states().pages(), batch));
  @autoreleasepool {
    return e.first_non_finite(batch);
  }
}

namespace {

// GB/s of reading `bytes` of random data, the best of a few launches.
Result<double> read_rate(DeviceCore& core, std::uint64_t bytes) {
  TERN_ASSIGN(const MemoryRef data, core.context->allocate(bytes, "measuring the read rate"));
  TERN_ASSIGN(const MemoryRef sink, core.context->allocate(256, "measuring the read rate"));
  // Constant data would clock higher than real weights do.
  std::minstd_rand random(1);
  auto* words = reinterpret_cast<std::uint32_t*>(data->contents());
  for (std::uint64_t i = 0; i < bytes / 4; ++i)
    words[i] = static_cast<std::uint32_t>(random() * 2654435761U);
  TERN_ASSIGN(const id<MTLComputePipelineState> pipeline,
              core.pipelines->pipeline(KernelId::kReadBytes));
  TernReadParams p{};
  p.vectors = bytes / 16;
  const Bases bases{[&](std::uint32_t) { return data->buffer(); }, sink->buffer(), sink->buffer()};
  double best = 0;
  for (int run = 0; run < 8; ++run) {
    @autoreleasepool {
      TERN_ASSIGN(const std::unique_ptr<Commands> commands,
                  Commands::begin(core.context, "measuring the read rate"));
      TERN_TRY(commands->dispatch(pipeline, read_launch(p, 256), bases));
      const auto buffer = Owned<id<MTLCommandBuffer>>::shared(commands->buffer());
      TERN_TRY(commands->commit()->wait());
      const double seconds = [buffer.get() GPUEndTime] - [buffer.get() GPUStartTime];
      if (seconds > 0) best = std::max(best, static_cast<double>(bytes) / (seconds * 1e9));
    }
  }
  return best;
}

}  // namespace

double MetalDevice::measure_read_gbps() {
  @autoreleasepool {
    const std::uint64_t bytes = core_->context->describe().max_buffer_bytes;
    const Result<double> rate =
        read_rate(*core_, std::min<std::uint64_t>(bytes, std::uint64_t{512} << 20));
    return rate.ok() ? *rate : 0;
  }
}

}  // namespace tern::metal
