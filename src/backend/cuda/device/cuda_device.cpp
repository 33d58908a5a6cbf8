#include "backend/cuda/device/cuda_device.h"

#include <algorithm>
#include <random>
#include <thread>

#include "backend/cuda/device/batch_check.h"
#include "base/cancellation.h"

namespace tern::cuda {

using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(std::shared_ptr<const DriverApi> api,
                                                     int ordinal,
                                                     const backend::DeviceProfile& profile,
                                                     const std::string& product,
                                                     const DeviceOptions& options) {
  auto core = std::make_shared<DeviceCore>();
  TERN_ASSIGN(core->context, Context::open(std::move(api), ordinal));
  std::shared_ptr<CudaStore> store;
  if (options.store)
    store = std::make_shared<CudaStore>(core->context, product, profile.architecture, profile.cores,
                                        *options.store);
  core->modules = std::make_shared<Modules>(core->context, profile.architecture, std::move(store));
  TERN_ASSIGN(Stream stream, Stream::make(core->context));
  core->stream.emplace(std::move(stream));
  return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(core), profile, options));
}

Result<std::shared_ptr<const backend::ResidentWeights>> CudaDevice::upload(
    const program::WeightSet& weights, const ProgressFn& progress, const CancelToken& cancel) {
  TERN_ASSIGN(
      std::shared_ptr<const CudaWeights> made,
      CudaWeights::make(weights, core_->context, progress, cancel, options_.upload_ring_bytes));
  return std::shared_ptr<const backend::ResidentWeights>(std::move(made));
}

Result<std::shared_ptr<backend::StatePool>> CudaDevice::make_states(
    const std::vector<program::StateDecl>& states, const backend::PoolSizes& sizes) {
  TERN_ASSIGN(std::shared_ptr<CudaStates> made, CudaStates::make(states, sizes, core_->context));
  return std::shared_ptr<backend::StatePool>(std::move(made));
}

Result<std::unique_ptr<backend::Executable>> CudaDevice::load(
    std::shared_ptr<const backend::Plan> plan,
    std::shared_ptr<const backend::ResidentWeights> weights,
    std::shared_ptr<backend::StatePool> states) {
  auto cuda_plan = std::dynamic_pointer_cast<const CudaPlan>(std::move(plan));
  auto cuda_weights = std::dynamic_pointer_cast<const CudaWeights>(std::move(weights));
  auto cuda_states = std::dynamic_pointer_cast<CudaStates>(std::move(states));
  if (!cuda_plan || !cuda_weights || !cuda_states)
    return fail(ErrorCode::kInternal, "[cuda] plan, weights or states belong to another backend");
  if (cuda_weights->memory() && cuda_weights->memory()->device() != core_->context->id())
    return fail(ErrorCode::kInternal, "[cuda] the weights lie on another device");
  if (cuda_plan->profile.architecture != profile_.architecture)
    return fail(ErrorCode::kInternal, "[cuda] the plan was made for {}, this device is {}",
                cuda_plan->profile.architecture, profile_.architecture);
  if (cuda_states->decls() != cuda_plan->program.states)
    return fail(ErrorCode::kInternal, "[cuda] the states are not those of the program");
  TERN_ASSIGN(std::unique_ptr<CudaExecutable> made,
              CudaExecutable::make(core_, std::move(cuda_plan), std::move(cuda_weights),
                                   std::move(cuda_states), options_.executable));
  return std::unique_ptr<backend::Executable>(std::move(made));
}

Result<backend::Submission> CudaDevice::submit(backend::Executable& executable,
                                               const program::BatchBlock& batch,
                                               const CancelToken& cancel) {
  auto& e = static_cast<CudaExecutable&>(executable);
  if (cancel.requested()) return fail(ErrorCode::kCancelled, "the step was cancelled");
  TERN_TRY(check_batch(e.cuda_plan(), e.states().pages(), batch));
  const std::lock_guard lock(core_->mutex);
  TERN_TRY(core_->context->make_current());
  if (e.is_in_flight)
    return fail(ErrorCode::kInternal, "[submit] the last step of this executable has not ended");
  TERN_TRY(e.append(batch));
  e.ticket = ++core_->last_ticket;
  e.is_in_flight = true;
  return backend::Submission{e.ticket};
}

Result<void> CudaDevice::wait(backend::Executable& executable, backend::Submission submission,
                              backend::Deadline deadline) {
  auto& e = static_cast<CudaExecutable&>(executable);
  if (!e.is_in_flight || e.ticket != submission.ticket)
    return fail(ErrorCode::kInternal, "[wait] there is no step {}", submission.ticket);
  const Clock::time_point begin = Clock::now();
  const bool is_bounded = deadline != backend::kNoDeadline;
  const Clock::time_point end = is_bounded ? deadline : begin + options_.longest_wait;
  while (true) {
    Result<bool> ended = e.has_ended();
    if (!ended.ok()) {
      e.is_in_flight = false;  // nothing of this step will ever be there
      return ended.error();
    }
    if (*ended) {
      e.is_in_flight = false;
      return {};
    }
    const Clock::time_point now = Clock::now();
    if (now >= end) {
      if (is_bounded) return fail(ErrorCode::kDeadline, "the step has not ended yet");
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(options_.longest_wait).count();
      return fail(ErrorCode::kDevice,
                  "[cuda] a step of {} has not ended after {} s on {} ({} launches); it may hang",
                  e.plan().program.name, seconds, profile_.name, e.plan().steps.size());
    }
    // A decode step ends within a millisecond or so: look closely for that long, then let others
    // have the processor.
    if (now - begin > std::chrono::milliseconds(2))
      std::this_thread::sleep_for(
          std::min<Clock::duration>(end - now, std::chrono::microseconds(100)));
    else
      std::this_thread::yield();
  }
}

Result<backend::OutputRows> CudaDevice::output(const backend::Executable& executable,
                                               backend::Submission, std::size_t index) const {
  if (core_->context->is_lost()) TERN_TRY(core_->context->make_current());
  return static_cast<const CudaExecutable&>(executable).output(index);
}

Result<std::vector<double>> CudaDevice::time_steps(backend::Executable& executable,
                                                   const program::BatchBlock& batch, int repeats) {
  auto& e = static_cast<CudaExecutable&>(executable);
  TERN_TRY(check_batch(e.cuda_plan(), e.states().pages(), batch));
  return e.time_steps(batch, repeats);
}

Result<std::string> CudaDevice::first_non_finite(backend::Executable& executable,
                                                 const program::BatchBlock& batch) {
  auto& e = static_cast<CudaExecutable&>(executable);
  TERN_TRY(check_batch(e.cuda_plan(), e.states().pages(), batch));
  return e.first_non_finite(batch);
}

namespace {

// GB/s of reading `bytes` of random data, the best of a few launches.
Result<double> read_rate(DeviceCore& core, int cores, std::uint64_t bytes) {
  const std::lock_guard lock(core.mutex);
  TERN_TRY(core.context->make_current());
  const Stream& stream = *core.stream;
  TERN_ASSIGN(const auto data, core.context->allocate(bytes, "measuring the read rate"));
  TERN_ASSIGN(const auto sink, core.context->allocate(256, "measuring the read rate"));
  // Constant data would clock higher than real weights do.
  std::minstd_rand random(1);
  std::vector<std::uint32_t> piece(std::size_t{1} << 20);
  for (std::uint32_t& v : piece) v = static_cast<std::uint32_t>(random() * 2654435761U);
  const std::size_t piece_bytes = piece.size() * 4;
  for (std::uint64_t at = 0; at + piece_bytes <= bytes; at += piece_bytes)
    TERN_TRY(stream.copy_to_device(data->address() + at, piece.data(), piece_bytes));
  TERN_ASSIGN(FunctionHandle* const function, core.modules->function(KernelId::kReadBytes));
  TERN_ASSIGN(const Event begin, Event::make(core.context, true));
  TERN_ASSIGN(const Event end, Event::make(core.context, true));
  TernReadParams p{};
  p.vectors = bytes / 16;
  double best = 0;
  for (int run = 0; run < 8; ++run) {
    TERN_TRY(stream.record(begin));
    TERN_TRY(launch(stream, function, read_launch(p, static_cast<unsigned>(2 * cores)),
                    {data->address(), sink->address(), sink->address()}));
    TERN_TRY(stream.record(end));
    TERN_TRY(end.wait());
    float milliseconds = 0;
    TERN_TRY(core.context->check(
        core.context->api().event_elapsed(&milliseconds, begin.handle(), end.handle()),
        "cuEventElapsedTime"));
    if (milliseconds > 0)
      best = std::max(best, static_cast<double>(bytes) / (static_cast<double>(milliseconds) * 1e6));
  }
  return best;
}

}  // namespace

double CudaDevice::measure_read_gbps() {
  const Result<double> rate = read_rate(*core_, profile_.cores, std::uint64_t{1} << 30);
  return rate.ok() ? *rate : 0;
}

}  // namespace tern::cuda
