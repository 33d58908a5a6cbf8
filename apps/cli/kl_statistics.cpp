// Mean, percentiles, and the share of equal first choices.
#include "cli/kl_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tern::cli {
namespace {

struct Named {
  const char* key;
  const char* title;
  double share;
};
constexpr Named kPercentiles[] = {
    {"max", "maximum", 1}, {"p99_9", "99.9 %", 0.999}, {"p99", "99 %", 0.99}, {"p95", "95 %", 0.95},
    {"p90", "90 %", 0.9},  {"median", "median", 0.5},  {"p10", "10 %", 0.1},  {"p5", "5 %", 0.05},
    {"p1", "1 %", 0.01},   {"p0_1", "0.1 %", 0.001},   {"min", "minimum", 0},
};

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double standard_error(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - middle) * (value - middle);
  const auto n = static_cast<double>(values.size());
  return std::sqrt(sum / (n - 1) / n);
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

std::vector<double> sorted(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

double percentile(std::span<const double> ascending, double share) {
  const double rank = share * static_cast<double>(ascending.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, ascending.size() - 1);
  return ascending[low] + (rank - static_cast<double>(low)) * (ascending[high] - ascending[low]);
}

void KlStatistics::add(const KlBaseRow& base, std::span<const float> logits, const RowScore& score,
                       std::int32_t target) {
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double log_p = base.log_p[i];
    if (std::isinf(log_p)) continue;
    sum += std::exp(log_p) * (log_p - (static_cast<double>(logits[i]) - score.log_sum));
  }
  kl_.push_back(sum);
  delta_p_.push_back(std::exp(-score.nll) - std::exp(base.log_p[static_cast<std::size_t>(target)]));
  nll_ += score.nll;
  base_nll_ += base.nll;
  same_top_ += score.top == base.top ? 1 : 0;
}

std::string KlStatistics::text() const {
  if (kl_.empty()) return "";
  const auto n = static_cast<double>(kl_.size());
  const std::vector<double> kl = sorted(kl_);
  const std::vector<double> delta = sorted(delta_p_);
  std::string out =
      fmt::format("Mean PPL(Q)/PPL(base)   : {:.6f}\n", std::exp((nll_ - base_nll_) / n));
  out += fmt::format("\nKL divergence (nats)\n  {:<10}: {:.6g} +/- {:.2g}\n", "mean", mean(kl_),
                     standard_error(kl_));
  for (const Named& each : kPercentiles) {
    out += fmt::format("  {:<10}: {:.6g}\n", each.title, percentile(kl, each.share));
  }
  out += fmt::format("\nChange of p of the right token (%)\n  {:<10}: {:.4f} +/- {:.4f}\n", "mean",
                     mean(delta_p_) * 100, standard_error(delta_p_) * 100);
  for (const Named& each : kPercentiles) {
    out += fmt::format("  {:<10}: {:.4f}\n", each.title, percentile(delta, each.share) * 100);
  }
  out += fmt::format("  {:<10}: {:.4f}\n", "RMS", root_mean_square(delta_p_) * 100);
  out += fmt::format("\nSame top token          : {:.3f} %\n",
                     static_cast<double>(same_top_) / n * 100);
  return out;
}

nlohmann::ordered_json KlStatistics::json() const {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (kl_.empty()) return json;
  const auto n = static_cast<double>(kl_.size());
  const std::vector<double> kl = sorted(kl_);
  const std::vector<double> delta = sorted(delta_p_);
  json["ppl_ratio"] = std::exp((nll_ - base_nll_) / n);
  json["mean"] = mean(kl_);
  json["stderr"] = standard_error(kl_);
  for (const Named& each : kPercentiles) json[each.key] = percentile(kl, each.share);
  nlohmann::ordered_json change{{"mean", mean(delta_p_)}};
  for (const Named& each : kPercentiles) change[each.key] = percentile(delta, each.share);
  change["rms"] = root_mean_square(delta_p_);
  json["delta_p"] = std::move(change);
  json["same_top"] = static_cast<double>(same_top_) / n;
  return json;
}

}  // namespace tern::cli
