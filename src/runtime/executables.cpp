#include "runtime/executables.h"

#include <algorithm>

#include "base/error.h"

namespace tern::runtime {

program::Bucket largest_bucket(const PlanSettings& settings, OutputForm form) {
  const int rows =
      form == OutputForm::kLast ? settings.batch_rows : std::min(settings.batch_rows, kAllRows);
  return {rows, std::int64_t{settings.pages_per_sequence} * program::kPagePositions};
}

Result<std::shared_ptr<const backend::Plan>> make_plan(const models::TextModel& model,
                                                       const backend::Backend& backend,
                                                       const backend::DeviceProfile& profile,
                                                       const PlanSettings& settings,
                                                       OutputForm form,
                                                       const program::Bucket& bucket) {
  models::ProgramRequest request;
  request.bucket = bucket;
  request.output_rows = form == OutputForm::kLast ? kLastRows : bucket.rows;
  request.k = settings.k;
  request.v = settings.v;
  request.taps = form == OutputForm::kTaps;
  const program::Program program = program::run_passes(model.build(request), settings.activations);
  backend::PlanOptions options;
  options.exact = settings.exact;
  options.pins = settings.pins;
  options.limits.rows = bucket.rows;
  options.limits.output_rows = request.output_rows;
  options.limits.pages_per_sequence = settings.pages_per_sequence;
  return backend.plan(program, profile, options);
}

Result<std::shared_ptr<const backend::Plan>> Executables::plan(OutputForm form) const {
  return make_plan(model_, backend_, device_.profile(), settings_, form,
                   largest_bucket(settings_, form));
}

program::Bucket Executables::bucket_of(const program::BatchBlock& batch) {
  std::int64_t context = 0;
  for (const program::BatchSequence& s : batch.sequences)
    context = std::max(context, std::int64_t{s.kv_length} + s.row_count);
  return {batch.rows(), context};
}

Result<backend::Executable*> Executables::get(OutputForm form, const program::Bucket& step) {
  const program::Bucket bucket = backend_.bucket(step, largest_bucket(settings_, form));
  for (const Entry& entry : entries_)
    if (entry.form == form && entry.bucket == bucket) return entry.executable.get();
  Result<std::shared_ptr<const backend::Plan>> made =
      make_plan(model_, backend_, device_.profile(), settings_, form, bucket);
  TERN_TRY(made);
  Result<std::unique_ptr<backend::Executable>> loaded =
      device_.load(std::move(*made), weights_, states_);
  TERN_TRY(loaded);
  entries_.push_back({form, bucket, std::move(*loaded)});
  return entries_.back().executable.get();
}

Result<void> Executables::prepare(OutputForm form) {
  const std::scoped_lock lock(mutex_);
  TERN_TRY(get(form, largest_bucket(settings_, form)));
  return {};
}

Result<StepOutputs> Executables::step(OutputForm form, const program::BatchBlock& batch,
                                      const CancelToken& cancel) {
  std::unique_lock lock(mutex_);
  const Result<backend::Executable*> executable = get(form, bucket_of(batch));
  TERN_TRY(executable);
  const Result<backend::Submission> submission = device_.submit(**executable, batch, cancel);
  TERN_TRY(submission);
  TERN_TRY(device_.wait(**executable, *submission, backend::kNoDeadline));
  return StepOutputs(std::move(lock), device_, **executable, *submission);
}

std::string Executables::first_non_finite(OutputForm form, const program::BatchBlock& batch) {
  const std::scoped_lock lock(mutex_);
  const Result<backend::Executable*> executable = get(form, bucket_of(batch));
  if (!executable.ok()) return {};
  const Result<std::string> where = device_.first_non_finite(**executable, batch);
  return where.ok() ? *where : std::string();
}

Result<std::vector<double>> Executables::time_steps(const program::BatchBlock& batch, int repeats) {
  const std::scoped_lock lock(mutex_);
  const Result<backend::Executable*> executable = get(OutputForm::kLast, bucket_of(batch));
  TERN_TRY(executable);
  return device_.time_steps(**executable, batch, repeats);
}

}  // namespace tern::runtime
