// `tern explain`: what a step will run, op by op, from the plan itself.
#include <algorithm>
#include <cctype>
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

constexpr std::int64_t kDefaultContext = 1024;

// "blk.17.ffn_down" and "kv.17" of one layer and those of the next are the same op: a number after
// "letter." is a layer.
std::string without_layer(const std::string& shapes) {
  static constexpr std::string_view kDigits = "0123456789";
  std::string out;
  for (std::size_t at = 0; at < shapes.size();) {
    out += shapes[at++];
    const bool follows_letter =
        at >= 2 && std::isalpha(static_cast<unsigned char>(shapes[at - 2])) != 0;
    if (out.back() != '.' || !follows_letter) continue;
    const std::size_t end = std::min(shapes.find_first_not_of(kDigits, at), shapes.size());
    if (end > at) out += '*';
    at = end;
  }
  return out;
}

// Consecutive regions that do the same, shown once.
struct Stretch {
  std::string first_region, last_region;
  std::size_t count = 1;
  std::vector<ExplainRow> rows;  // sums over the regions
};

bool is_same(const ExplainRow& a, const ExplainRow& b) {
  return a.op == b.op && a.kernel == b.kernel && a.reason == b.reason && a.shapes == b.shapes;
}

std::vector<Stretch> stretches_of(const std::vector<ExplainRow>& rows) {
  std::vector<Stretch> out;
  for (std::size_t begin = 0; begin < rows.size();) {
    Stretch next;
    next.first_region = next.last_region = rows[begin].region;
    std::size_t end = begin;
    for (; end < rows.size() && rows[end].region == rows[begin].region; ++end) {
      next.rows.push_back(rows[end]);
      next.rows.back().shapes = without_layer(rows[end].shapes);
    }
    begin = end;
    const bool joins =
        !out.empty() && out.back().rows.size() == next.rows.size() &&
        std::equal(next.rows.begin(), next.rows.end(), out.back().rows.begin(), is_same);
    if (!joins) {
      out.push_back(std::move(next));
      continue;
    }
    Stretch& last = out.back();
    last.last_region = next.last_region;
    ++last.count;
    for (std::size_t i = 0; i < next.rows.size(); ++i) {
      last.rows[i].bytes += next.rows[i].bytes;
      last.rows[i].flops += next.rows[i].flops;
      last.rows[i].microseconds += next.rows[i].microseconds;
    }
  }
  return out;
}

std::string short_number(double value) {
  if (value >= 1e9) return fmt::format("{:.2f} G", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{:.0f} ", value);
}

struct Totals {
  double bytes = 0, flops = 0, microseconds = 0;
};
Totals totals_of(const std::vector<ExplainRow>& rows) {
  Totals totals;
  for (const ExplainRow& row : rows) {
    totals.bytes += row.bytes;
    totals.flops += row.flops;
    totals.microseconds += row.microseconds;
  }
  return totals;
}

// Microseconds, share of the step, GB/s, and per cent of the ceiling.
void add_times(std::vector<std::string>& cells, const Totals& row, double step, double ceiling) {
  cells.push_back(fmt::format("{:.1f}", row.microseconds));
  cells.push_back(step > 0 ? fmt::format("{:.1f} %", row.microseconds / step * 100) : "-");
  const double gbps = row.microseconds > 0 ? row.bytes / row.microseconds / 1e3 : 0;
  cells.push_back(fmt::format("{:.2f}", gbps));
  cells.push_back(ceiling > 0 ? fmt::format("{:.0f}", gbps / ceiling * 100) : "-");
}

std::string rows_table(const Explanation& explanation, bool is_timed) {
  std::vector<std::string> columns = {"region", "op", "kernel", ">bytes", ">FLOPs"};
  if (is_timed) columns.insert(columns.end(), {">us", ">share", ">GB/s", ">% ceiling"});
  columns.insert(columns.end(), {"shapes", "reason"});
  Table table(columns);
  const Totals total = totals_of(explanation.rows_of_ops);
  for (const Stretch& stretch : stretches_of(explanation.rows_of_ops)) {
    std::string region = stretch.first_region;
    if (stretch.count > 1) {
      // "layer 0" .. "layer 29" as "layer 0-29".
      const std::size_t space = stretch.last_region.rfind(' ');
      region += "-" + stretch.last_region.substr(space == std::string::npos ? 0 : space + 1);
    }
    for (const ExplainRow& row : stretch.rows) {
      std::vector<std::string> cells = {region, row.op, row.kernel, short_number(row.bytes) + "B",
                                        short_number(row.flops)};
      if (is_timed) {
        add_times(cells, {row.bytes, row.flops, row.microseconds}, total.microseconds,
                  explanation.read_gbps);
      }
      cells.insert(cells.end(), {row.shapes, row.reason});
      table.add(std::move(cells));
      region.clear();
    }
  }
  return table.text("");
}

std::string explanation_text(const Explanation& explanation, bool is_timed) {
  const Totals total = totals_of(explanation.rows_of_ops);
  const auto context = static_cast<std::uint64_t>(explanation.context);
  std::string out = fmt::format("{}; one step of {} tokens with {} in the context\n\n",
                                explanation.device, explanation.rows, grouped(context));
  out += rows_table(explanation, is_timed);
  out += fmt::format("\ntotal    {} ops, {}B, {}FLOPs\n", explanation.rows_of_ops.size(),
                     short_number(total.bytes), short_number(total.flops));
  if (is_timed && total.microseconds > 0) {
    const double gbps = total.bytes / total.microseconds / 1e3;
    out += fmt::format("time     {:.1f} us, {:.2f} GB/s", total.microseconds, gbps);
    if (explanation.read_gbps > 0) {
      out += fmt::format(" = {:.0f} % of the {:.2f} GB/s that this machine reads",
                         gbps / explanation.read_gbps * 100, explanation.read_gbps);
    }
    out += "\n";
  }
  const MemoryNeeds& needs = explanation.needs;
  out += fmt::format("memory   weights {}, context {}, work {}\n", binary_size(needs.weights),
                     binary_size(needs.kv_per_position * context), binary_size(needs.arena));
  return out;
}

Json explanation_json(const Explanation& explanation, bool is_timed) {
  Json rows = Json::array();
  for (const ExplainRow& row : explanation.rows_of_ops) {
    Json json{{"region", row.region}, {"op", row.op},         {"shapes", row.shapes},
              {"kernel", row.kernel}, {"reason", row.reason}, {"bytes", row.bytes},
              {"flops", row.flops}};
    if (is_timed) json["microseconds"] = row.microseconds;
    rows.push_back(std::move(json));
  }
  Json out{{"device", explanation.device},
           {"rows", explanation.rows},
           {"context", explanation.context},
           {"weights_bytes", explanation.needs.weights},
           {"kv_bytes_per_position", explanation.needs.kv_per_position},
           {"arena_bytes", explanation.needs.arena},
           {"ops", std::move(rows)},
           {"warnings", explanation.warnings}};
  if (is_timed) out["read_gbps"] = explanation.read_gbps;
  return out;
}

}  // namespace

int explain_command(Context& context) {
  const Arguments& arguments = context.arguments;
  const std::string path = only_model(arguments);
  const EngineOptions engine_choice = engine_options(arguments);
  const ModelOptions model_choice = model_options(arguments);
  if (model_choice.check_tensors && !arguments.on(Flag::kTime)) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kCheckTensors),
         "explain reads the weights only with --time");
  }
  if (!engine_choice.profile.empty() && arguments.on(Flag::kTime)) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kTime),
         "--profile plans for a device that is not here; there is nothing to time");
  }
  if (!engine_choice.profile.empty() && arguments.has(Flag::kDevice)) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kDevice),
         "--profile names the device; give one of the two");
  }
  print_settings(context);
  const Engine engine = Engine::create(engine_choice).value();
  const std::int64_t rows = arguments.integer(Flag::kRows);
  std::int64_t positions = arguments.integer(Flag::kCtxSize);
  if (positions == 0) {
    const ModelInfo info = take(path, engine.inspect(path, model_choice));
    positions = info.context_length;
    if (!arguments.has(Flag::kCtxSize)) positions = std::min(positions, kDefaultContext);
  }
  const bool is_timed = arguments.on(Flag::kTime);
  Explanation explanation;
  if (is_timed) {
    ProgressBar bar(progress_mode(arguments.text(Flag::kProgress), arguments.on(Flag::kQuiet),
                                  context.terminal));
    const Model model =
        take(path, engine.open(path, model_choice, bar.callback(), context.interrupt.token()));
    bar.close();
    explanation = take(path, model.explain(rows, positions, true));
  } else {
    explanation = take(path, engine.explain(path, model_choice, rows, positions));
  }
  if (arguments.on(Flag::kJson)) {
    const Json json = explanation_json(explanation, is_timed);
    context.output.write(json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    context.output.write_text(valid_utf8(explanation_text(explanation, is_timed)));
    print_warnings(explanation.warnings);
  }
  return kExitOk;
}

}  // namespace tern::cli
