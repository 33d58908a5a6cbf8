// `tern calibrate`: measures which kernel is fastest on this machine, keeps that, and prints what
// changed.
#include <nlohmann/json.hpp>

#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/model_setup.h"
#include "cli/progress_bar.h"
#include "cli/table.h"
#include "cli/utf8_text.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

CalibrationOptions calibration_options(const Arguments& arguments) {
  CalibrationOptions options;
  options.quick = arguments.on(Flag::kQuick);
  options.shapes = arguments.text(Flag::kShapes);
  if (!arguments.words().empty() || arguments.has(Flag::kModel)) {
    options.model = only_model(arguments);
    options.model_options.batch_rows = static_cast<int>(arguments.integer(Flag::kUbatchSize));
    options.model_options.layout = arguments.text(Flag::kLayout);
    if (arguments.text(Flag::kActivations) == "f32")
      options.model_options.activations = Activations::kF32;
  }
  if (!options.model.empty() && !options.shapes.empty()) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kShapes),
         "a model is named too; give one of the two");
  }
  return options;
}

const CalibrationTime* time_of(const CalibrationRow& row, const std::string& variant) {
  for (const CalibrationTime& time : row.times)
    if (time.variant == variant) return &time;
  return nullptr;
}

// "41.2 us (openblas 60.1, +- 0.4)": the others behind the one that runs.
std::string others_text(const CalibrationRow& row) {
  std::string text;
  for (const CalibrationTime& time : row.times) {
    if (time.variant == row.after) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {:.1f}", time.variant, time.microseconds);
  }
  return text.empty() ? "-" : text;
}

std::string change_text(const CalibrationRow& row) {
  if (row.before.empty()) return "new";
  return row.before == row.after ? "" : "was " + row.before;
}

std::string report_text(const CalibrationReport& report) {
  Table table(
      {"shape", "runs", ">us", ">spread", ">rounds", ">GB/s", ">TFLOP/s", "others, us", "change"});
  std::size_t changed = 0;
  for (const CalibrationRow& row : report.rows) {
    const CalibrationTime* time = time_of(row, row.after);
    if (time == nullptr) continue;
    if (!row.before.empty() && row.before != row.after) ++changed;
    table.add({row.problem, row.after, fmt::format("{:.1f}", time->microseconds),
               fmt::format("{:.1f}", time->spread), fmt::format("{}", time->samples),
               fmt::format("{:.1f}", row.gbps), fmt::format("{:.3f}", row.tflops), others_text(row),
               change_text(row)});
  }
  std::string out =
      fmt::format("{}\nlaunch {:.2f} us, reads {:.1f} GB/s, multiplies {:.0f} GFLOP/s\n\n",
                  report.device, report.launch_us, report.read_gbps, report.peak_gflops);
  out += table.text("");
  out += fmt::format("\n{} shapes measured, {} changed; kept in {}\n", report.rows.size(), changed,
                     report.kept_in);
  return out;
}

Json report_json(const CalibrationReport& report) {
  Json rows = Json::array();
  for (const CalibrationRow& row : report.rows) {
    Json times = Json::array();
    for (const CalibrationTime& t : row.times)
      times.push_back({{"variant", t.variant},
                       {"microseconds", t.microseconds},
                       {"spread", t.spread},
                       {"rounds", t.samples}});
    rows.push_back({{"shape", row.problem},
                    {"before", row.before},
                    {"after", row.after},
                    {"gbps", row.gbps},
                    {"tflops", row.tflops},
                    {"times", std::move(times)}});
  }
  return {{"device", report.device},           {"kept_in", report.kept_in},
          {"launch_us", report.launch_us},     {"read_gbps", report.read_gbps},
          {"peak_gflops", report.peak_gflops}, {"rows", std::move(rows)},
          {"skipped", report.skipped}};
}

}  // namespace

int calibrate_command(Context& context) {
  const Arguments& arguments = context.arguments;
  const EngineOptions engine_choice = engine_options(arguments);
  const CalibrationOptions options = calibration_options(arguments);
  print_settings(context);
  const Engine engine = Engine::create(engine_choice).value();
  print_warnings(engine.warnings());
  ProgressBar bar(
      progress_mode(arguments.text(Flag::kProgress), arguments.on(Flag::kQuiet), context.terminal));
  const CalibrationReport report =
      engine.calibrate(options, bar.callback(), context.interrupt.token()).value();
  bar.close();
  if (arguments.on(Flag::kJson)) {
    const Json json = report_json(report);
    context.output.write(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    context.output.write_text(valid_utf8(report_text(report)));
  }
  print_warnings(report.skipped);
  return kExitOk;
}

}  // namespace tern::cli
