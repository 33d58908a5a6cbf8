#include "backend/cpu/device.h"

#include <algorithm>

#include "backend/cpu/read_bandwidth.h"
#include "base/signals_blocked.h"

namespace tern::cpu {

CpuDevice::CpuDevice(const backend::DeviceProfile& profile,
                     std::shared_ptr<const OpenblasLibrary> library)
    : profile_(profile),
      library_(std::move(library)),
      pool_(std::max(profile.cores, 1)),
      queue_(std::make_unique<Queue>()) {
  queue_->jobs.reserve(16);  // a step allocates nothing
  const SignalsBlocked blocked;
  driver_ = std::thread([this] { drive(); });
}

CpuDevice::~CpuDevice() {
  if (pool_.is_forked_copy()) {
    // The driver does not exist in a fork()ed child: there is nothing to join, and a condition that
    // it waits on must not be destroyed.
    driver_.detach();
    (void)queue_.release();
    return;
  }
  {
    const std::scoped_lock lock(queue_->mutex);
    queue_->is_stopping = true;
    for (Job& job : queue_->jobs)
      if (job.state == JobState::kQueued || job.state == JobState::kRunning) job.cancel.request();
  }
  queue_->changed.notify_all();
  driver_.join();
}

Result<void> CpuDevice::check_process() const {
  if (!pool_.is_forked_copy()) return {};
  return fail(ErrorCode::kDevice,
              "this process is a fork() of the one that opened the engine, whose threads do not "
              "exist here; start a new process (spawn) instead");
}

Result<std::shared_ptr<const backend::ResidentWeights>> CpuDevice::upload(
    const program::WeightSet& weights, const ProgressFn& progress, const CancelToken& cancel) {
  TERN_TRY(check_process());
  Result<std::shared_ptr<const CpuWeights>> made =
      CpuWeights::make(weights, packed_tiling(profile_.cpu, weights.pins), pool_, progress, cancel);
  TERN_TRY(made);
  return std::shared_ptr<const backend::ResidentWeights>(std::move(*made));
}

Result<std::shared_ptr<backend::StatePool>> CpuDevice::make_states(
    const std::vector<program::StateDecl>& states, const backend::PoolSizes& sizes) {
  return CpuStates::make(states, sizes.pages);
}

Result<std::unique_ptr<backend::Executable>> CpuDevice::load(
    std::shared_ptr<const backend::Plan> plan,
    std::shared_ptr<const backend::ResidentWeights> weights,
    std::shared_ptr<backend::StatePool> states) {
  auto cpu_plan = std::dynamic_pointer_cast<const CpuPlan>(std::move(plan));
  auto cpu_weights = std::dynamic_pointer_cast<const CpuWeights>(std::move(weights));
  auto cpu_states = std::dynamic_pointer_cast<CpuStates>(std::move(states));
  if (!cpu_plan || !cpu_weights || !cpu_states)
    return fail(ErrorCode::kInternal, "[cpu] plan, weights or states belong to another backend");
  if (cpu_plan->profile.cpu != profile_.cpu || cpu_plan->profile.cores != profile_.cores)
    return fail(ErrorCode::kInternal, "[cpu] the plan was made for another processor");
  if (cpu_weights->tiling() != cpu_plan->tiling && cpu_plan->has_packed())
    return fail(ErrorCode::kInternal,
                "[cpu] the weights are laid out for another kernel than the plan's");
  if (cpu_states->decls() != cpu_plan->program.states)
    return fail(ErrorCode::kInternal, "[cpu] the states are not those of the program");
  Result<std::unique_ptr<backend::Executable>> made =
      CpuExecutable::make(std::move(cpu_plan), std::move(cpu_weights), std::move(cpu_states),
                          {.library = library_, .pool = pool_, .device = number_});
  if (made.ok())
    static_cast<CpuExecutable&>(**made).on_retire([this](CpuExecutable& e) { retire(e); });
  return made;
}

void CpuDevice::retire(CpuExecutable& executable) {
  if (pool_.is_forked_copy()) return;
  std::unique_lock lock(queue_->mutex);
  std::vector<Job>& jobs = queue_->jobs;
  std::erase_if(jobs, [&executable](const Job& job) {
    return job.executable == &executable && job.state != JobState::kRunning;
  });
  const auto is_running = [&] {
    return std::any_of(jobs.begin(), jobs.end(), [&executable](const Job& job) {
      return job.executable == &executable && job.state == JobState::kRunning;
    });
  };
  for (Job& job : jobs)
    if (job.executable == &executable) job.cancel.request();
  queue_->changed.wait(lock, [&] { return !is_running(); });
  std::erase_if(jobs, [&executable](const Job& job) { return job.executable == &executable; });
}

// Every index of the block is checked against what it indexes before a kernel sees it.
Result<void> CpuDevice::check_batch(const CpuExecutable& executable,
                                    const program::BatchBlock& batch) const {
  const program::Program& p = executable.plan().program;
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kInvalidArgument, "[submit] {}", what);
  };
  const int rows = batch.rows();
  if (rows < 1 || rows > p.bucket.rows)
    return refuse(fmt::format("a step has {} rows, expected 1 to {}", rows, p.bucket.rows));
  if (batch.ids.size() != batch.sequence.size() || batch.position.size() != batch.sequence.size())
    return refuse("ids, sequence and position differ in length");
  if (static_cast<int>(batch.output_rows.size()) > p.output_rows)
    return refuse(fmt::format("{} output rows, expected at most {}", batch.output_rows.size(),
                              p.output_rows));
  for (std::int32_t id : batch.ids)
    if (id < 0 || id >= p.vocabulary)
      return refuse(
          fmt::format("token id {} is outside of the vocabulary of {}", id, p.vocabulary));
  for (std::uint32_t r : batch.output_rows)
    if (r >= static_cast<std::uint32_t>(rows)) return refuse(fmt::format("there is no row {}", r));
  const auto pages = static_cast<std::uint32_t>(executable.states().pages());
  for (std::uint32_t page : batch.pages)
    if (page >= pages) return refuse(fmt::format("there is no page {}", page));
  const program::BatchLimits& limits = executable.plan().limits;
  if (static_cast<int>(batch.sequences.size()) > limits.sequences)
    return refuse(
        fmt::format("{} sequences, expected at most {}", batch.sequences.size(), limits.sequences));
  std::uint64_t covered = 0;
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const program::BatchSequence& s = batch.sequences[i];
    const std::uint64_t end = std::uint64_t{s.kv_length} + s.row_count;
    if (s.first_row != covered || covered + s.row_count > static_cast<std::uint64_t>(rows) ||
        end > std::uint64_t{s.page_count} * program::kPagePositions ||
        s.page_count > static_cast<std::uint32_t>(limits.pages_per_sequence) ||
        std::uint64_t{s.page_begin} + s.page_count > batch.pages.size())
      return refuse("a sequence's rows or pages do not fit the block");
    for (std::uint32_t r = s.first_row; r < s.first_row + s.row_count; ++r)
      if (batch.sequence[r] != i ||
          batch.position[r] != static_cast<std::int32_t>(s.kv_length + (r - s.first_row)))
        return refuse(fmt::format("row {} does not belong to its sequence", r));
    covered += s.row_count;
  }
  if (covered != static_cast<std::uint64_t>(rows)) return refuse("rows without a sequence");
  return {};
}

Result<backend::Submission> CpuDevice::submit(backend::Executable& executable,
                                              const program::BatchBlock& batch,
                                              const CancelToken& cancel) {
  auto& cpu = static_cast<CpuExecutable&>(executable);
  TERN_TRY(check_process());
  TERN_TRY(check_batch(cpu, batch));
  if (cancel.requested()) return fail(ErrorCode::kCancelled, "the step was cancelled");
  std::unique_lock lock(queue_->mutex);
  for (const Job& job : queue_->jobs)
    if (job.executable == &cpu &&
        (job.state == JobState::kQueued || job.state == JobState::kRunning))
      return fail(ErrorCode::kInternal, "[submit] the last step of this executable has not ended");
  // Results that nobody fetched are of no use once the outputs are overwritten.
  std::erase_if(queue_->jobs, [&cpu](const Job& job) { return job.executable == &cpu; });
  cpu.set_batch(batch);
  queue_->jobs.push_back({++queue_->last_ticket, &cpu, cancel, JobState::kQueued});
  const backend::Submission submission{queue_->last_ticket};
  lock.unlock();
  queue_->changed.notify_all();
  return submission;
}

CpuDevice::Job* CpuDevice::find(std::uint64_t ticket) {
  for (Job& job : queue_->jobs)
    if (job.ticket == ticket) return &job;
  return nullptr;
}

// Runs the oldest queued job. The lock is given up while it runs.
void CpuDevice::run_front(std::unique_lock<std::mutex>& lock) {
  const auto job = std::find_if(queue_->jobs.begin(), queue_->jobs.end(),
                                [](const Job& j) { return j.state == JobState::kQueued; });
  if (job == queue_->jobs.end()) return;
  job->state = JobState::kRunning;
  CpuExecutable* executable = job->executable;
  const CancelToken cancel = job->cancel;
  const std::uint64_t ticket = job->ticket;
  lock.unlock();
  const bool is_complete = executable->run(pool_, cancel);
  lock.lock();
  if (Job* ended = find(ticket))
    ended->state = is_complete ? JobState::kDone : JobState::kCancelled;
  queue_->changed.notify_all();
}

void CpuDevice::drive() {
  std::unique_lock lock(queue_->mutex);
  while (true) {
    const auto has_work = [this] {
      bool is_running = false;
      bool is_queued = false;
      for (const Job& job : queue_->jobs) {
        is_running = is_running || job.state == JobState::kRunning;
        is_queued = is_queued || job.state == JobState::kQueued;
      }
      return is_queued && !is_running;
    };
    queue_->changed.wait(lock, [&] { return queue_->is_stopping || has_work(); });
    if (queue_->is_stopping) return;
    run_front(lock);
  }
}

Result<void> CpuDevice::take_result(std::uint64_t ticket) {
  const Job* job = find(ticket);
  const bool is_cancelled = job->state == JobState::kCancelled;
  std::erase_if(queue_->jobs, [ticket](const Job& j) { return j.ticket == ticket; });
  if (is_cancelled) return fail(ErrorCode::kCancelled, "the step was cancelled");
  return {};
}

Result<void> CpuDevice::wait(backend::Executable&, backend::Submission submission,
                             backend::Deadline deadline) {
  std::unique_lock lock(queue_->mutex);
  while (true) {
    const Job* job = find(submission.ticket);
    if (!job) return fail(ErrorCode::kInternal, "[wait] there is no step {}", submission.ticket);
    if (job->state == JobState::kDone || job->state == JobState::kCancelled)
      return take_result(submission.ticket);
    // Whoever waits without a deadline may as well run the step itself, if it is next: that saves
    // two thread switches of 20 to 60 us each, which a token of a small model would notice.
    bool is_next = deadline == backend::kNoDeadline && job->state == JobState::kQueued;
    for (const Job& other : queue_->jobs)
      if (other.state == JobState::kRunning ||
          (other.state == JobState::kQueued && other.ticket < job->ticket))
        is_next = false;
    if (is_next) {
      run_front(lock);
      continue;
    }
    if (deadline == backend::kNoDeadline) {
      queue_->changed.wait(lock);
    } else if (queue_->changed.wait_until(lock, deadline) == std::cv_status::timeout) {
      const Job* again = find(submission.ticket);
      if (again && (again->state == JobState::kQueued || again->state == JobState::kRunning))
        return fail(ErrorCode::kDeadline, "the step has not ended yet");
    }
  }
}

Result<backend::OutputRows> CpuDevice::output(const backend::Executable& executable,
                                              backend::Submission, std::size_t index) const {
  return static_cast<const CpuExecutable&>(executable).output(index);
}

Result<std::vector<double>> CpuDevice::time_steps(backend::Executable& executable,
                                                  const program::BatchBlock& batch, int repeats) {
  auto& cpu = static_cast<CpuExecutable&>(executable);
  TERN_TRY(check_process());
  TERN_TRY(check_batch(cpu, batch));
  cpu.set_batch(batch);
  return cpu.time_steps(pool_, repeats);
}

Result<std::string> CpuDevice::first_non_finite(backend::Executable& executable,
                                                const program::BatchBlock& batch) {
  auto& cpu = static_cast<CpuExecutable&>(executable);
  TERN_TRY(check_process());
  TERN_TRY(check_batch(cpu, batch));
  cpu.set_batch(batch);
  std::string where = cpu.first_non_finite(pool_);
  if (cpu.kv_flags() & kKvStoreOverflow)
    where +=
        " (keys or values beyond the range of half precision were stored; -ctk f32 -ctv f32 holds "
        "them)";
  return where;
}

double CpuDevice::measure_read_gbps() {
  if (!check_process().ok()) return 0;
  return tern::cpu::measure_read_gbps(pool_);
}

double CpuDevice::estimate_read_gbps(const CancelToken& cancel) {
  if (!check_process().ok()) return 0;
  return tern::cpu::estimate_read_gbps(pool_, cancel);
}

std::uint64_t CpuDevice::last_cache_bytes() const { return tern::cpu::last_cache_bytes(); }

}  // namespace tern::cpu
