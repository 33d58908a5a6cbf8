// Results of `tern bench` as a table people paste, JSON, JSON lines or CSV.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_plan.h"
#include "tern/model_info.h"

namespace tern::cli {

struct BenchRow {
  BenchSetup setup;  // threads as they were
  BenchTest test;
  std::shared_ptr<const ModelInfo> info;
  std::string processor;
  bool use_mmap = true;
  std::string test_time;  // ISO 8601, UTC
  std::vector<std::uint64_t> samples_ns;
  double ceiling_gbps = 0;
};

struct BenchFigures {
  double avg_ns = 0, stddev_ns = 0, avg_ts = 0, stddev_ts = 0;
  std::vector<double> samples_ts;
  std::uint64_t bytes_per_token =
      0;  // weights and context that one generated token reads; 0 for prompts
  std::optional<double> ceiling_share;  // of the read bandwidth; nothing where compute decides
};
// Mean and sample standard deviation.
[[nodiscard]] BenchFigures bench_figures(const BenchRow& row);
// The fields of llama-bench, none renamed, and Tern's own after them.
[[nodiscard]] nlohmann::ordered_json bench_json(const BenchRow& row);

// Rows of an older result, for the ratio column.
class BenchBaseline {
 public:
  // A JSON array, or one object a line. Errors: kInvalidFile with the path.
  [[nodiscard]] static BenchBaseline parse(const std::string& path, const std::string& text);
  // Tokens per second of the same test; nothing when it was not measured.
  [[nodiscard]] std::optional<double> tokens_per_second(const BenchRow& row) const;

 private:
  std::vector<nlohmann::json> rows_;
};

class BenchReport {
 public:
  using Sink = std::function<void(std::string_view)>;
  // `form` is md, json, jsonl, csv or none.
  BenchReport(std::string form, const BenchPlan& plan, const BenchBaseline* baseline, Sink sink);
  void add(const BenchRow& row);
  // Closes what is open, so that a result that was cut short can be read.
  void finish();

 private:
  struct Column {
    std::string name;
    std::size_t width;
    bool is_right;
  };
  void add_markdown(const BenchRow& row);
  void add_csv(const BenchRow& row);

  std::string form_;
  const BenchBaseline* baseline_;
  Sink sink_;
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

}  // namespace tern::cli
