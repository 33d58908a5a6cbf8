// Engine::calibrate: which problems, measuring them on the device, and what changed.
#include <algorithm>
#include <ctime>
#include <fstream>

#include "backend/choice/calibration_set.h"
#include "runtime/guarded.h"
#include "runtime/model_file.h"
#include "runtime/model_impl.h"
#include "runtime/path_error.h"
#include "runtime/tuning.h"
#include "tern/version.h"

namespace tern {
namespace {

using backend::Problem;

// Dense products are what a shape names by itself: floats by a weight of this format, as a plan of
// the device would pose it.
Result<std::vector<Problem>> problems_of_shapes(
    const std::vector<backend::CalibrationShape>& shapes) {
  std::vector<Problem> problems;
  for (const backend::CalibrationShape& shape : shapes) {
    if (shape.format != "f32" && shape.format != "f16" && shape.format != "bf16")
      return fail(ErrorCode::kUsage,
                  "'{}' is no format of shapes; expected f32, f16 or bf16 (--model measures what a "
                  "model of another format needs)",
                  shape.format);
    const std::uint64_t element = shape.format == "f32" ? 4 : 2;
    for (const std::int64_t rows : shape.rows)
      problems.push_back(
          {.op = "dense_product",
           .dtypes = fmt::format("f32 x {} -> f32", shape.format),
           .layout = "rows",
           .n = shape.n,
           .k = shape.k,
           .m = backend::rows_bucket_of(rows),
           .alignment = backend::alignment_class(static_cast<std::uint64_t>(shape.k) * element)});
  }
  return problems;
}

Result<std::vector<Problem>> problems_of_file(const std::string& path) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::kNotFound, "{}: cannot be opened", path);
  std::string text(kMost + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (text.size() > kMost)
    return fail(ErrorCode::kInvalidFile, "{}: a list of shapes has at most 1 MiB", path);
  const Result<std::vector<backend::CalibrationShape>> shapes = backend::parse_shapes(text);
  if (!shapes.ok()) return runtime::with_path(path, shapes.error());
  Result<std::vector<Problem>> problems = problems_of_shapes(*shapes);
  if (!problems.ok()) return runtime::with_path(path, problems.error());
  if (problems->empty()) return fail(ErrorCode::kInvalidFile, "{}: no shape is in it", path);
  return problems;
}

// What a model's plan chose for.
Result<std::vector<Problem>> problems_of_model(const Engine::Impl& engine, const std::string& path,
                                               const ModelOptions& options) {
  const Result<runtime::ModelFile> file = runtime::open_model_file(path, options, {}, {});
  TERN_TRY(file);
  if (file->refusal) return *file->refusal;
  const runtime::PlanSettings settings = runtime::plan_settings(
      options, std::min<std::int64_t>(file->model->config().context_length, 4096));
  const Result<std::shared_ptr<const backend::Plan>> plan = runtime::make_plan(
      *file->model, *engine.backend, engine.profile, settings, runtime::OutputForm::kLast,
      runtime::largest_bucket(settings, runtime::OutputForm::kLast));
  TERN_TRY(plan);
  return (*plan)->problems;
}

void keep_quick_rows(std::vector<Problem>& problems) {
  const std::vector<std::int64_t> rows = backend::default_rows(true);
  std::erase_if(problems, [&rows](const Problem& p) {
    return std::find(rows.begin(), rows.end(), p.m) == rows.end();
  });
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

CalibrationRow report_row(const Problem& problem, const backend::MeasuredTable* before,
                          const backend::MeasuredTable& after) {
  CalibrationRow row;
  row.problem = describe(problem);
  if (const backend::TableRow* old = before ? before->find(problem) : nullptr)
    row.before = old->incumbent;
  const backend::TableRow* now = after.find(problem);
  if (!now) return row;
  row.after = now->incumbent;
  for (const backend::VariantTime& t : now->times) {
    row.times.push_back({t.variant, t.median.value() * 1e6, t.spread.value() * 1e6, t.samples});
    if (t.variant != now->incumbent) continue;
    row.gbps = t.bandwidth.value() / 1e9;
    row.tflops = t.rate.value() / 1e12;
  }
  return row;
}

}  // namespace

Result<CalibrationReport> Engine::calibrate(const CalibrationOptions& options,
                                            const ProgressFn& progress,
                                            const CancelToken& cancel) const {
  return runtime::guarded("calibrate", "to measure", [&]() -> Result<CalibrationReport> {
    TERN_TRY(runtime::check_device(*impl_));
    backend::CalibrationRequest request;
    if (!options.shapes.empty()) {
      TERN_ASSIGN(request.problems, problems_of_file(options.shapes));
    } else if (!options.model.empty()) {
      TERN_ASSIGN(request.problems,
                  problems_of_model(*impl_, options.model, options.model_options));
      if (options.quick) keep_quick_rows(request.problems);
    } else {
      TERN_ASSIGN(request.problems, problems_of_shapes(backend::default_shapes(options.quick)));
    }
    const std::shared_ptr<const backend::MeasuredTable> before = impl_->profile.measured;
    request.previous = before.get();
    request.is_quick = options.quick;
    request.date = today();
    request.revision = TERN_VERSION_STRING;
    const Result<backend::CalibrationOutcome> measured =
        impl_->device->calibrate(request, progress, cancel);
    if (!measured.ok())
      return fail(measured.error().code(), "calibrate: {}", measured.error().message());
    const backend::CalibrationOutcome& outcome = *measured;
    CalibrationReport report;
    report.device = device_text();
    TERN_ASSIGN(report.kept_in, runtime::save_tuning(impl_->profile, outcome.table));
    const backend::DeviceRates& rates = outcome.table.rates();
    report.launch_us = rates.launch.value() * 1e6;
    report.read_gbps = rates.bandwidth.value() / 1e9;
    report.peak_gflops = rates.peak_of(backend::Arithmetic::kF32).value() / 1e9;
    for (const Problem& problem : outcome.measured)
      report.rows.push_back(report_row(problem, before.get(), outcome.table));
    report.skipped = outcome.skipped;
    return report;
  });
}

}  // namespace tern
