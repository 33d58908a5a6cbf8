#include "runtime/executables.h"

#include <algorithm>

#include "base/error.h"

namespace tern::runtime {

Result<std::shared_ptr<const backend::Plan>> make_plan(const models::TextModel& model,
                                                       const backend::Backend& backend,
                                                       const backend::DeviceProfile& profile,
                                                       const PlanSettings& settings,
                                                       OutputForm form) {
  const bool is_last = form == OutputForm::kLast;
  models::ProgramRequest request;
  request.bucket.rows = is_last ? settings.batch_rows : std::min(settings.batch_rows, kAllRows);
  request.bucket.context = std::int64_t{settings.pages_per_sequence} * program::kPagePositions;
  request.output_rows = is_last ? kLastRows : request.bucket.rows;
  request.k = settings.k;
  request.v = settings.v;
  request.taps = form == OutputForm::kTaps;
  const program::Program program = program::run_passes(model.build(request), settings.activations);
  backend::PlanOptions options;
  options.exact = settings.exact;
  options.pins = settings.pins;
  options.limits = {request.bucket.rows, 1, request.output_rows, settings.pages_per_sequence};
  return backend.plan(program, profile, options);
}

Result<std::shared_ptr<const backend::Plan>> Executables::plan(OutputForm form) const {
  return make_plan(model_, backend_, device_.profile(), settings_, form);
}

Result<backend::Executable*> Executables::get(OutputForm form) {
  std::unique_ptr<backend::Executable>& slot = forms_[static_cast<std::size_t>(form)];
  if (!slot) {
    Result<std::shared_ptr<const backend::Plan>> made = plan(form);
    TERN_TRY(made);
    Result<std::unique_ptr<backend::Executable>> loaded =
        device_.load(std::move(*made), weights_, states_);
    TERN_TRY(loaded);
    slot = std::move(*loaded);
  }
  return slot.get();
}

Result<void> Executables::prepare(OutputForm form) {
  const std::scoped_lock lock(mutex_);
  TERN_TRY(get(form));
  return {};
}

Result<StepOutputs> Executables::step(OutputForm form, const program::BatchBlock& batch,
                                      const CancelToken& cancel) {
  std::unique_lock lock(mutex_);
  const Result<backend::Executable*> executable = get(form);
  TERN_TRY(executable);
  const Result<backend::Submission> submission = device_.submit(**executable, batch, cancel);
  TERN_TRY(submission);
  TERN_TRY(device_.wait(**executable, *submission, backend::kNoDeadline));
  return StepOutputs(std::move(lock), device_, **executable);
}

std::string Executables::first_non_finite(OutputForm form, const program::BatchBlock& batch) {
  const std::scoped_lock lock(mutex_);
  const Result<backend::Executable*> executable = get(form);
  if (!executable.ok()) return {};
  const Result<std::string> where = device_.first_non_finite(**executable, batch);
  return where.ok() ? *where : std::string();
}

Result<std::vector<double>> Executables::time_steps(const program::BatchBlock& batch, int repeats) {
  const std::scoped_lock lock(mutex_);
  const Result<backend::Executable*> executable = get(OutputForm::kLast);
  TERN_TRY(executable);
  return device_.time_steps(**executable, batch, repeats);
}

}  // namespace tern::runtime
