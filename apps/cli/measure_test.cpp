// Plans and reports of bench, log-probabilities and KL divergence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "cli/bench_plan.h"
#include "cli/bench_report.h"
#include "cli/kl_statistics.h"
#include "cli/log_probabilities.h"
#include "tern/error.h"

namespace tern::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

Arguments bench_arguments(const std::vector<std::string>& words) {
  std::vector<std::string> warnings;
  return Arguments::parse(kBench, words, Environment({}), warnings);
}

std::vector<std::string> names(const BenchPlan& plan) {
  std::vector<std::string> out;
  for (const BenchTest& test : plan.tests) out.push_back(test.name());
  return out;
}

TEST(BenchPlan, DefaultsAreThoseOfLlamaBench) {
  const BenchPlan plan = bench_plan(bench_arguments({"m.gguf"}));
  EXPECT_THAT(names(plan), ElementsAre("pp512", "tg128"));
  ASSERT_EQ(plan.setups.size(), 1U);
  EXPECT_EQ(plan.tests[0].repetitions, 5);
  EXPECT_EQ(plan.context(), 512);
}

TEST(BenchPlan, AllCombinationsRun) {
  const BenchPlan plan =
      bench_plan(bench_arguments({"m.gguf", "-p", "0", "-n", "16,32", "-d", "0,4k", "-pg", "64,8",
                                  "-t", "1,2", "-ctk", "f16,f32"}));
  EXPECT_THAT(names(plan), ElementsAre("tg16", "tg32", "pp64+tg8", "tg16 @ d4096", "tg32 @ d4096",
                                       "pp64+tg8 @ d4096"));
  EXPECT_EQ(plan.setups.size(), 4U);
  EXPECT_EQ(plan.context(), 4096 + 72);
  EXPECT_TRUE(plan.shows_type_k);
  EXPECT_FALSE(plan.shows_type_v);
}

TEST(BenchPlan, RefusesWhatCannotBeMeasured) {
  EXPECT_THROW((void)bench_plan(bench_arguments({"m", "-p", "0", "-n", "0"})), Error);
  EXPECT_THROW((void)bench_plan(bench_arguments({"m", "-pg", "64"})), Error);
  EXPECT_THROW((void)bench_plan(bench_arguments({"m", "-ctk", "q8_0"})), Error);
  EXPECT_THROW((void)bench_plan(bench_arguments({})), Error);
}

BenchRow sample_row() {
  BenchRow row;
  row.setup.model = "folder/m.gguf";
  row.setup.threads = 2;
  row.test = {0, 100, 50, 2};
  ModelInfo info;
  info.architecture = "qwen3";
  info.format_name = "Q1_0";
  info.parameters = 8'190'000'000ULL;
  info.data_bytes = 1'152'704'128;
  info.bytes_per_token = 900'000;
  info.needs.kv_per_position = 1000;
  info.kernels = {"q1_g128: lut"};
  row.info = std::make_shared<const ModelInfo>(info);
  row.samples_ns = {1'000'000'000, 2'000'000'000};
  row.ceiling_gbps = 0.15;  // GB/s
  row.test_time = "2026-11-30T18:00:00Z";
  return row;
}

TEST(BenchReport, ComputesMeansDeviationsAndTheShareOfTheCeiling) {
  const BenchFigures figures = bench_figures(sample_row());
  EXPECT_DOUBLE_EQ(figures.avg_ns, 1.5e9);
  EXPECT_NEAR(figures.stddev_ns, 707106781.19, 0.01);
  EXPECT_THAT(figures.samples_ts, ElementsAre(100.0, 50.0));
  EXPECT_DOUBLE_EQ(figures.avg_ts, 75.0);
  EXPECT_NEAR(figures.stddev_ts, 35.3553, 1e-4);
  // 900,000 + 1000 * (50 + 100 / 2) = 1,000,000 bytes a token; 75 tokens a second of 150 MB/s.
  EXPECT_EQ(figures.bytes_per_token, 1'000'000U);
  EXPECT_DOUBLE_EQ(*figures.ceiling_share, 0.5);
}

TEST(BenchReport, JsonHasEveryFieldOfTheFormat) {
  const Json json = bench_json(sample_row());
  for (const char* field :
       {"build_commit",   "build_number",    "cpu_info",      "gpu_info",       "backends",
        "model_filename", "model_type",      "model_size",    "model_n_params", "n_batch",
        "n_ubatch",       "n_threads",       "cpu_mask",      "cpu_strict",     "poll",
        "type_k",         "type_v",          "n_gpu_layers",  "split_mode",     "main_gpu",
        "no_kv_offload",  "flash_attn",      "tensor_split",  "use_mmap",       "embeddings",
        "n_prompt",       "n_gen",           "n_depth",       "test_time",      "avg_ns",
        "stddev_ns",      "avg_ts",          "stddev_ts",     "samples_ns",     "samples_ts",
        "ceiling_gbps",   "bytes_per_token", "ceiling_share", "kernels"}) {
    EXPECT_TRUE(json.contains(field)) << field;
  }
  EXPECT_EQ(json["model_type"], "qwen3 8B Q1_0");
  EXPECT_EQ(json["avg_ns"], 1'500'000'000U);
}

std::string reported(const std::string& form, const BenchRow& row, const BenchBaseline* baseline,
                     int rows) {
  std::string out;
  BenchReport report(form, bench_plan(bench_arguments({"m"})), baseline,
                     [&](std::string_view text) { out += text; });
  for (int i = 0; i < rows; ++i) report.add(row);
  report.finish();
  return out;
}

TEST(BenchReport, MarkdownIsTheTablePeoplePaste) {
  const std::string table = reported("md", sample_row(), nullptr, 1);
  EXPECT_EQ(table.substr(0, table.find("\n\nbuild: ")),
            "| model                |       size |   params | backend | threads |            test |"
            "              t/s |   % ceiling |\n"
            "| -------------------- | ---------: | -------: | ------- | ------: | --------------: |"
            " ---------------: | ----------: |\n"
            "| qwen3 8B Q1_0        |   1.07 GiB |   8.19 B | CPU     |       2 |     tg100 @ d50 |"
            "    75.00 ± 35.36 |          50 |");
  EXPECT_THAT(table, HasSubstr("\n\nbuild: "));
}

TEST(BenchReport, PromptsHaveNoCeiling) {
  BenchRow row = sample_row();
  row.test = {512, 0, 0, 2};
  EXPECT_FALSE(bench_figures(row).ceiling_share);
  EXPECT_THAT(reported("md", row, nullptr, 1), HasSubstr("|           - |\n"));
  EXPECT_TRUE(bench_json(row)["ceiling_share"].is_null());
}

TEST(BenchReport, JsonIsOneArrayAndJsonLinesAreObjects) {
  EXPECT_EQ(Json::parse(reported("json", sample_row(), nullptr, 2)).size(), 2U);
  EXPECT_EQ(Json::parse(reported("json", sample_row(), nullptr, 0)).size(), 0U);
  const std::string lines = reported("jsonl", sample_row(), nullptr, 2);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_TRUE(Json::parse(lines.substr(0, lines.find('\n'))).is_object());
  EXPECT_EQ(reported("none", sample_row(), nullptr, 2), "");
}

TEST(BenchReport, CsvHasAHeaderAndQuotedCells) {
  const std::string csv = reported("csv", sample_row(), nullptr, 1);
  EXPECT_THAT(csv, testing::StartsWith("build_commit,build_number,cpu_info,"));
  EXPECT_THAT(csv, HasSubstr("\"folder/m.gguf\",\"qwen3 8B Q1_0\",\"1152704128\""));
  EXPECT_THAT(csv, testing::Not(HasSubstr("samples_ns")));
}

TEST(BenchReport, ComparesWithTheSameTestOfAnotherResult) {
  // As an older llama-bench writes it: fields are missing, others are unknown here.
  const BenchBaseline base = BenchBaseline::parse(
      "b.json",
      R"([{"model_filename":"other.gguf","n_prompt":0,"n_gen":100,"n_depth":50,"avg_ts":10.0,"flash_attn":-1},
          {"model_filename":"x/m.gguf","n_prompt":0,"n_gen":100,"n_depth":50,"n_threads":2,"avg_ts":25.0},
          {"model_filename":"x/m.gguf","n_prompt":512,"n_gen":0,"avg_ts":1.0}])");
  EXPECT_EQ(base.tokens_per_second(sample_row()), 25.0);
  EXPECT_THAT(reported("md", sample_row(), &base, 1), HasSubstr("|   3.00 |\n"));
  BenchRow other = sample_row();
  other.test.generate = 7;
  EXPECT_EQ(base.tokens_per_second(other), std::nullopt);
  EXPECT_THROW((void)BenchBaseline::parse("b", "{\"a\":1}"), Error);
  EXPECT_THROW((void)BenchBaseline::parse("b", "no json"), Error);
}

TEST(LogProbabilities, ScoresARow) {
  const std::vector<float> logits = {0.0F, std::log(2.0F), std::log(5.0F), std::log(2.0F)};
  const RowScore score = score_row(logits, 1);  // p = 1/10, 2/10, 5/10, 2/10
  EXPECT_NEAR(score.nll, -std::log(0.2), 1e-6);
  EXPECT_EQ(score.top, 2);
  EXPECT_THROW((void)score_row(std::vector<float>{0.0F, std::nanf("")}, 0), Error);
  EXPECT_EQ(score_row(std::vector<float>{1.0F, 1.0F}, 0).top, 0);
}

struct KlTest : testing::Test {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tern_kl_" + std::to_string(getpid()))).string();
  void TearDown() override { std::filesystem::remove(path); }
};

TEST_F(KlTest, EqualRunsAreAtDistanceZeroAndOthersAtTheirs) {
  // e^-60 lies below the floor and counts as 0.
  const std::vector<float> p = {std::log(0.5F), std::log(0.25F), std::log(0.25F), -60.0F};
  const std::vector<float> q = {std::log(0.25F), std::log(0.5F), std::log(0.25F), -60.0F};
  const KlHeader header = {8, 4, 1, 3, std::string(64, 'a')};
  {
    KlBaseWriter writer(path, false, header);
    for (int i = 0; i < 3; ++i) writer.add(p, score_row(p, 0));
    writer.commit();
  }
  KlBaseReader reader(path, header);
  KlBaseRow base;
  KlStatistics same, other;
  reader.next(base);
  EXPECT_NEAR(base.log_p[1], std::log(0.25), 4e-4);  // 24 nats in 65,534 steps
  EXPECT_TRUE(std::isinf(base.log_p[3]));
  same.add(base, p, score_row(p, 0), 0);
  other.add(base, q, score_row(q, 0), 0);
  const Json equal = same.json();
  EXPECT_NEAR(equal["mean"].get<double>(), 0, 1e-7);
  EXPECT_NEAR(equal["ppl_ratio"].get<double>(), 1, 1e-6);
  EXPECT_EQ(equal["same_top"], 1.0);
  // 0.5 log 2 + 0.25 log 0.5 = 0.25 log 2
  const Json changed = other.json();
  EXPECT_NEAR(changed["mean"].get<double>(), 0.25 * std::log(2.0), 2e-4);
  EXPECT_NEAR(changed["ppl_ratio"].get<double>(), 2, 1e-5);
  EXPECT_NEAR(changed["delta_p"]["mean"].get<double>(), -0.25, 2e-4);
  EXPECT_EQ(changed["same_top"], 0.0);
}

TEST_F(KlTest, RefusesABaseOfAnotherRun) {
  const KlHeader header = {8, 4, 1, 3, std::string(64, 'a')};
  const std::vector<float> p(4, 0.0F);
  {
    KlBaseWriter writer(path, false, header);
    for (int i = 0; i < 3; ++i) writer.add(p, score_row(p, 0));
    writer.commit();
  }
  for (const KlHeader& wrong :
       {KlHeader{16, 4, 1, 3, header.ids_sha256}, KlHeader{8, 5, 1, 3, header.ids_sha256},
        KlHeader{8, 4, 2, 3, header.ids_sha256}, KlHeader{8, 4, 1, 3, std::string(64, 'b')}}) {
    EXPECT_THROW(KlBaseReader(path, wrong), Error);
  }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THROW(KlBaseReader(path, header), Error);
  EXPECT_THROW(KlBaseReader(path + ".none", header), Error);
}

TEST(KlStatistics, PercentilesInterpolate) {
  const std::vector<double> values = {0, 10, 20, 30};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 0);
  EXPECT_DOUBLE_EQ(percentile(values, 1), 30);
  EXPECT_DOUBLE_EQ(percentile(values, 0.5), 15);
  EXPECT_DOUBLE_EQ(percentile(values, 0.1), 3);
}

}  // namespace
}  // namespace tern::cli
