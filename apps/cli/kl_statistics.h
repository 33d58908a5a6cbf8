// Statistics of a KL divergence over many tokens.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/log_probabilities.h"

namespace tern::cli {

class KlStatistics {
 public:
  // One scored token. `base` is p, `logits` with its score is q.
  void add(const KlBaseRow& base, std::span<const float> logits, const RowScore& score,
           std::int32_t target);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  std::vector<double> kl_, delta_p_;
  double nll_ = 0, base_nll_ = 0;
  std::size_t same_top_ = 0;
};

// Percentile by linear interpolation between the two nearest ranks; `sorted` is ascending and not
// empty.
[[nodiscard]] double percentile(std::span<const double> sorted, double share);

}  // namespace tern::cli
