// tern explain: what a step of a model runs, read from the plan itself.
#include <algorithm>

#include "base/error.h"
#include "runtime/guarded.h"
#include "runtime/model_file.h"
#include "runtime/model_impl.h"
#include "runtime/sequence.h"

namespace tern {
namespace {

using runtime::OutputForm;

std::string region_text(const program::Region& region) {
  return region.index < 0 ? region.name : fmt::format("{} {}", region.name, region.index);
}

std::string shapes_text(const program::Program& p, const program::Op& op) {
  std::string text;
  program::for_each_operand(op, [&](program::ValueId v, program::Access) {
    if (!text.empty()) text += " x ";
    text += program::shape_text(p, v);
  });
  if (op.result != program::kNoValue) text += " -> " + program::shape_text(p, op.result);
  return text;
}

Explanation explain_plan(const backend::Plan& plan, std::string device, std::int64_t rows,
                         std::int64_t context, const std::vector<double>& seconds) {
  Explanation e;
  e.device = std::move(device);
  e.rows = rows;
  e.context = context;
  e.warnings = plan.warnings;
  const program::Program& p = plan.program;
  const program::StepShape shape{rows, 1, context};
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const backend::PlanStep& step = plan.steps[i];
    const program::Op& op = p.ops[step.first_op];
    const program::OpCost cost = program::cost_of(p, op, shape);
    ExplainRow row;
    row.region = region_text(p.regions[op.region]);
    row.op = program::name_of(op);
    row.shapes = shapes_text(p, op);
    // Output rows are few, however many rows the step has.
    const bool is_output = op.result != program::kNoValue &&
                           p.at(op.result).element == program::Element::kF32 &&
                           p.at(op.result).rows.axis == program::RowAxis::kOutputRows;
    row.kernel = step.kernel_at(is_output ? shape.output_rows : rows);
    row.reason = step.reason_at(is_output ? shape.output_rows : rows);
    row.bytes = cost.weight_bytes + cost.state_bytes + cost.row_bytes;
    row.flops = cost.flops;
    if (i < seconds.size()) row.microseconds = seconds[i] * 1e6;
    e.rows_of_ops.push_back(std::move(row));
  }
  return e;
}

Result<void> check_step(std::int64_t rows, std::int64_t context, const runtime::PlanSettings& s) {
  if (rows < 1 || rows > s.batch_rows)
    return fail(ErrorCode::kUsage, "--rows {}: expected 1 to {}", rows, s.batch_rows);
  const std::int64_t most = std::int64_t{s.pages_per_sequence} * program::kPagePositions;
  if (context < rows || context > most)
    return fail(ErrorCode::kUsage, "a context of {} was asked for, expected {} to {}", context,
                rows, most);
  return {};
}

}  // namespace

Result<Explanation> Engine::explain(const std::string& path, const ModelOptions& options,
                                    std::int64_t rows, std::int64_t context) const {
  return runtime::guarded(path, "for the plan", [&]() -> Result<Explanation> {
    TERN_TRY(runtime::check_options(options));
    const Result<runtime::ModelFile> file = runtime::open_model_file(path, options, {}, {});
    TERN_TRY(file);
    if (file->refusal) return *file->refusal;
    const std::int64_t length =
        options.context > 0 ? options.context : file->model->config().context_length;
    const runtime::PlanSettings settings = runtime::plan_settings(options, length);
    TERN_TRY(check_step(rows, context, settings));
    const Result<std::shared_ptr<const backend::Plan>> plan =
        runtime::make_plan(*file->model, *impl_->backend, impl_->profile, settings,
                           OutputForm::kLast, runtime::largest_bucket(settings, OutputForm::kLast));
    TERN_TRY(plan);
    Explanation e = explain_plan(**plan, device_text(), rows, context, {});
    for (const std::string& line : impl_->warnings)
      if (std::find(e.warnings.begin(), e.warnings.end(), line) == e.warnings.end())
        e.warnings.push_back(line);
    const Result<MemoryNeeds> needs =
        runtime::memory_needs(*file, *impl_->backend, impl_->profile, settings);
    TERN_TRY(needs);
    e.needs = *needs;
    return e;
  });
}

Result<Explanation> Model::explain(std::int64_t rows, std::int64_t context, bool time) const {
  return runtime::guarded(impl_->info.path, "for the plan", [&]() -> Result<Explanation> {
    runtime::Executables& executables = *impl_->executables;
    TERN_TRY(check_step(rows, context, executables.settings()));
    const Result<std::shared_ptr<const backend::Plan>> plan = executables.plan(OutputForm::kLast);
    TERN_TRY(plan);
    std::vector<double> seconds;
    double ceiling = 0;
    if (time) {
      // The cache before the step is left as it is (zeros): times do not depend on values.
      runtime::PageLease lease(*impl_->pages);
      const auto count = static_cast<std::size_t>((context + program::kPagePositions - 1) /
                                                  program::kPagePositions);
      if (!lease.take(count))
        return fail(ErrorCode::kOutOfMemory, "other sessions hold the KV cache");
      std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<std::int32_t>((i * 7919) %
                                           static_cast<std::size_t>(impl_->info.vocabulary));
      program::BatchBlock batch;
      program::BatchSequence s;
      s.row_count = static_cast<std::uint32_t>(rows);
      s.kv_length = static_cast<std::uint32_t>(context - rows);
      s.page_count = static_cast<std::uint32_t>(count);
      batch.add_sequence(s, ids.data(), lease.pages().data());
      batch.output_rows.push_back(static_cast<std::uint32_t>(rows - 1));
      constexpr int kRepeats = 7;
      Result<std::vector<double>> timed = executables.time_steps(batch, kRepeats);
      TERN_TRY(timed);
      seconds = std::move(*timed);
      ceiling = impl_->engine->device->measure_read_gbps();
    }
    Explanation e = explain_plan(**plan, impl_->info.device, rows, context, seconds);
    e.needs = impl_->info.needs;
    e.read_gbps = ceiling;
    return e;
  });
}

}  // namespace tern
