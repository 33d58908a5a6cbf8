// The four forms. Field names and units are those of llama-bench, so that its readers keep working.
#include "cli/bench_report.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "cli/build_info.h"
#include "cli/cli_error.h"
#include "cli/model_setup.h"
#include "cli/table.h"
#include "cli/utf8_text.h"

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
double mean(const std::vector<T>& values) {
  if (values.empty()) return 0;
  double sum = 0;
  for (const T value : values) sum += static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

template <class T>
double deviation(const std::vector<T>& values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double sum = 0;
  for (const T value : values)
    sum += (static_cast<double>(value) - middle) * (static_cast<double>(value) - middle);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

std::string csv_cell(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>()
                     : value.is_null() ? ""
                                       : value.dump();
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) {
    text.insert(at, 1, '"');
  }
  return '"' + text + '"';
}

}  // namespace

BenchFigures bench_figures(const BenchRow& row) {
  BenchFigures figures;
  figures.avg_ns = mean(row.samples_ns);
  figures.stddev_ns = deviation(row.samples_ns);
  const auto tokens = static_cast<double>(row.test.prompt + row.test.generate);
  for (const std::uint64_t ns : row.samples_ns) {
    figures.samples_ts.push_back(1e9 * tokens / static_cast<double>(ns));
  }
  figures.avg_ts = mean(figures.samples_ts);
  figures.stddev_ts = deviation(figures.samples_ts);
  if (row.test.prompt == 0) {
    // The context grows from `depth` to depth + n: on average it holds half of what is generated.
    const double positions =
        static_cast<double>(row.test.depth) + static_cast<double>(row.test.generate) / 2;
    const double bytes = static_cast<double>(row.info->bytes_per_token) +
                         static_cast<double>(row.info->needs.kv_per_position) * positions;
    figures.bytes_per_token = static_cast<std::uint64_t>(bytes);
    if (row.ceiling_gbps > 0) {
      figures.ceiling_share = bytes * figures.avg_ts / (row.ceiling_gbps * 1e9);
    }
  }
  return figures;
}

Json bench_json(const BenchRow& row) {
  const BenchFigures figures = bench_figures(row);
  const BuildInfo build = build_info();
  Json json;
  json["build_commit"] = build.commit;
  json["build_number"] = build.number;
  json["cpu_info"] = row.processor;
  json["gpu_info"] = "";
  json["backends"] = "CPU";
  json["model_filename"] = row.setup.model;
  json["model_type"] = model_type(*row.info);
  json["model_size"] = row.info->data_bytes;
  json["model_n_params"] = row.info->parameters;
  json["n_batch"] = row.setup.batch;
  json["n_ubatch"] = row.setup.ubatch;
  json["n_threads"] = row.setup.threads;
  json["cpu_mask"] = "0x0";
  json["cpu_strict"] = false;
  json["poll"] = 50;
  json["type_k"] = row.setup.type_k;
  json["type_v"] = row.setup.type_v;
  json["n_gpu_layers"] = 0;
  json["split_mode"] = "none";
  json["main_gpu"] = 0;
  json["no_kv_offload"] = false;
  json["flash_attn"] = true;
  json["tensor_split"] = "0.00";
  json["use_mmap"] = row.use_mmap;
  json["embeddings"] = false;
  json["n_prompt"] = row.test.prompt;
  json["n_gen"] = row.test.generate;
  json["n_depth"] = row.test.depth;
  json["test_time"] = row.test_time;
  json["avg_ns"] = static_cast<std::uint64_t>(figures.avg_ns);
  json["stddev_ns"] = static_cast<std::uint64_t>(figures.stddev_ns);
  json["avg_ts"] = figures.avg_ts;
  json["stddev_ts"] = figures.stddev_ts;
  json["samples_ns"] = row.samples_ns;
  json["samples_ts"] = figures.samples_ts;
  json["ceiling_gbps"] = row.ceiling_gbps;
  json["bytes_per_token"] = figures.bytes_per_token;
  json["ceiling_share"] = figures.ceiling_share ? Json(*figures.ceiling_share) : Json(nullptr);
  json["kernels"] = row.info->kernels;
  return json;
}

BenchBaseline BenchBaseline::parse(const std::string& path, const std::string& text) {
  BenchBaseline out;
  const auto add = [&](const nlohmann::json& value) {
    if (!value.is_object() || !value.contains("avg_ts") || !value["avg_ts"].is_number()) {
      fail(ErrorCode::kInvalidFile, path, "is no result of tern bench or llama-bench (no avg_ts)");
    }
    out.rows_.push_back(value);
  };
  nlohmann::json whole = nlohmann::json::parse(text, nullptr, false);
  if (whole.is_array()) {
    for (const nlohmann::json& value : whole) add(value);
  } else if (!whole.is_discarded()) {
    add(whole);
  } else {
    for_each_word(text, '\n', [&](std::string_view line) {
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
      const nlohmann::json value = nlohmann::json::parse(line, nullptr, false);
      if (value.is_discarded())
        fail(ErrorCode::kInvalidFile, path, "is neither JSON nor JSON lines");
      add(value);
    });
  }
  if (out.rows_.empty()) {
    fail(ErrorCode::kInvalidFile, path,
         "has no result to compare with; write one with tern bench MODEL -o json");
  }
  return out;
}

std::optional<double> BenchBaseline::tokens_per_second(const BenchRow& row) const {
  const Json mine = bench_json(row);
  // A field that an older file lacks counts as equal, the depth as 0.
  const auto is_equal = [&](const nlohmann::json& theirs, const char* field) {
    if (!theirs.contains(field)) return true;
    return theirs[field] == nlohmann::json(mine[field]);
  };
  std::optional<double> found;
  for (const nlohmann::json& theirs : rows_) {
    const bool is_same_test = theirs.value("n_prompt", nlohmann::json(-1)) == row.test.prompt &&
                              theirs.value("n_gen", nlohmann::json(-1)) == row.test.generate &&
                              theirs.value("n_depth", nlohmann::json(0)) == row.test.depth;
    bool is_same_setup = true;
    for (const char* field : {"n_threads", "type_k", "type_v", "n_ubatch"}) {
      is_same_setup = is_same_setup && is_equal(theirs, field);
    }
    if (!is_same_test || !is_same_setup) continue;
    const nlohmann::json name = theirs.value("model_filename", nlohmann::json(""));
    const bool is_same_model =
        name.is_string() && base_name(name.get<std::string>()) == base_name(row.setup.model);
    if (is_same_model) return theirs["avg_ts"].get<double>();
    if (!found) found = theirs["avg_ts"].get<double>();
  }
  return found;
}

BenchReport::BenchReport(std::string form, const BenchPlan& plan, const BenchBaseline* baseline,
                         Sink sink)
    : form_(std::move(form)), baseline_(baseline), sink_(std::move(sink)) {
  columns_ = {{"model", 20, false},
              {"size", 10, true},
              {"params", 8, true},
              {"backend", 7, false},
              {"threads", 7, true}};
  if (plan.shows_batch) columns_.push_back({"n_batch", 7, true});
  if (plan.shows_ubatch) columns_.push_back({"n_ubatch", 8, true});
  if (plan.shows_type_k) columns_.push_back({"type_k", 6, true});
  if (plan.shows_type_v) columns_.push_back({"type_v", 6, true});
  columns_.insert(columns_.end(), {{"test", 15, true}, {"t/s", 16, true}, {"% ceiling", 11, true}});
  if (baseline_ != nullptr) columns_.push_back({"ratio", 6, true});
}

void BenchReport::add_markdown(const BenchRow& row) {
  const BenchFigures figures = bench_figures(row);
  std::vector<std::string> cells = {model_type(*row.info), binary_size(row.info->data_bytes),
                                    parameter_count(row.info->parameters), "CPU",
                                    std::to_string(row.setup.threads)};
  for (const Column& column : columns_) {
    if (column.name == "n_batch") cells.push_back(std::to_string(row.setup.batch));
    if (column.name == "n_ubatch") cells.push_back(std::to_string(row.setup.ubatch));
    if (column.name == "type_k") cells.push_back(row.setup.type_k);
    if (column.name == "type_v") cells.push_back(row.setup.type_v);
  }
  cells.push_back(row.test.name());
  cells.push_back(fmt::format("{:.2f} ± {:.2f}", figures.avg_ts, figures.stddev_ts));
  cells.push_back(figures.ceiling_share ? fmt::format("{:.0f}", *figures.ceiling_share * 100)
                                        : "-");
  if (baseline_ != nullptr) {
    const auto other = baseline_->tokens_per_second(row);
    cells.push_back(other && *other > 0 ? fmt::format("{:.2f}", figures.avg_ts / *other) : "-");
  }
  if (rows_ == 0) {
    columns_[0].width = std::max(columns_[0].width, width_of(cells[0]));
    std::string names = "|", rule = "|";
    for (const Column& column : columns_) {
      names += " " + padded(column.name, column.width, column.is_right) + " |";
      rule += " " + std::string(column.width - (column.is_right ? 1 : 0), '-') +
              (column.is_right ? ":" : "") + " |";
    }
    sink_(names + "\n" + rule + "\n");
  }
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    line += " " + padded(cells[i], columns_[i].width, columns_[i].is_right) + " |";
  }
  sink_(line + "\n");
}

void BenchReport::add_csv(const BenchRow& row) {
  const Json json = bench_json(row);
  std::string names, values;
  for (const auto& [name, value] : json.items()) {
    if (value.is_array()) continue;
    names += (names.empty() ? "" : ",") + name;
    values += (values.empty() ? "" : ",") + csv_cell(value);
  }
  sink_((rows_ == 0 ? names + "\n" : "") + values + "\n");
}

void BenchReport::add(const BenchRow& row) {
  if (form_ == "md") add_markdown(row);
  if (form_ == "csv") add_csv(row);
  if (form_ == "jsonl") {
    sink_(bench_json(row).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }
  if (form_ == "json") {
    sink_((rows_ == 0 ? "[\n" : ",\n") +
          bench_json(row).dump(2, ' ', false, Json::error_handler_t::replace));
  }
  ++rows_;
}

void BenchReport::finish() {
  if (form_ == "json") sink_(rows_ == 0 ? "[]\n" : "\n]\n");
  if (form_ == "md" && rows_ > 0) {
    const BuildInfo build = build_info();
    sink_(fmt::format("\nbuild: {} ({})\n", build.commit, build.version));
  }
}

}  // namespace tern::cli
