#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/random.h"

namespace tern::runtime {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

Result<void> check_number(const char* name, float value, float low, float high) {
  if (value >= low && value <= high) return {};  // false for NaN
  return fail(ErrorCode::kInvalidArgument, "{} is {}, expected {} to {}", name, value, low, high);
}

Result<void> check_options(const SamplingOptions& o, std::int64_t vocabulary) {
  constexpr float kBig = 1e9F;
  TERN_TRY(check_number("temperature", o.temperature, 0, kBig));
  TERN_TRY(check_number("top_p", o.top_p, 0, 1));
  TERN_TRY(check_number("min_p", o.min_p, 0, 1));
  TERN_TRY(check_number("repeat_penalty", o.repeat_penalty, 1e-6F, kBig));
  TERN_TRY(check_number("presence_penalty", o.presence_penalty, -kBig, kBig));
  TERN_TRY(check_number("frequency_penalty", o.frequency_penalty, -kBig, kBig));
  if (o.top_k < 0)
    return fail(ErrorCode::kInvalidArgument, "top_k is {}, expected 0 (off) or more", o.top_k);
  if (o.repeat_last_n < -1)
    return fail(ErrorCode::kInvalidArgument,
                "repeat_last_n is {}, expected -1 (the whole context), 0 (off) or more",
                o.repeat_last_n);
  for (const auto& [id, bias] : o.logit_bias) {
    if (id < 0 || id >= vocabulary)
      return fail(ErrorCode::kInvalidArgument,
                  "a logit bias names token {}, the vocabulary has {} tokens", id, vocabulary);
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      return fail(ErrorCode::kInvalidArgument, "the logit bias of token {} is {}", id, bias);
  }
  return {};
}

Error nothing_left() {
  return {ErrorCode::kInvalidArgument, "logit_bias and min_tokens forbid every token"};
}

}  // namespace

bool is_finite(std::span<const float> values) {
  // x - x is 0 for finite x, NaN for Inf and NaN: one pass that vectorises. Eight sums, since the
  // order of additions of one would have to be kept.
  float poison[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8)
    for (std::size_t j = 0; j < 8; ++j) poison[j] += values[i + j] - values[i + j];
  for (; i < values.size(); ++i) poison[0] += values[i] - values[i];
  float sum = 0;
  for (float p : poison) sum += p;
  return sum == 0;
}

Result<Sampler> Sampler::create(const SamplingOptions& options, std::int64_t vocabulary) {
  TERN_TRY(check_options(options, vocabulary));
  Sampler s;
  s.options_ = options;
  const auto size = static_cast<std::size_t>(vocabulary);
  s.logits_.reserve(size);
  s.candidates_.reserve(size);
  s.weights_.reserve(size);
  s.counts_.assign(size, 0);
  return s;
}

// Bias, then penalties, then what may not be chosen.
void Sampler::adjust(std::span<const std::int32_t> recent,
                     std::span<const std::int32_t> forbidden) {
  const auto at = [this](std::int32_t id) -> float& {
    return logits_[static_cast<std::size_t>(id)];
  };
  for (const auto& [id, bias] : options_.logit_bias) at(id) += bias;
  const bool has_penalty = options_.repeat_penalty != 1.0F || options_.presence_penalty != 0.0F ||
                           options_.frequency_penalty != 0.0F;
  if (has_penalty && options_.repeat_last_n != 0) {
    const auto window =
        options_.repeat_last_n < 0
            ? recent.size()
            : std::min(recent.size(), static_cast<std::size_t>(options_.repeat_last_n));
    const auto last = recent.last(window);
    for (std::int32_t id : last) ++counts_[static_cast<std::size_t>(id)];
    for (std::int32_t id : last) {
      std::int32_t& count = counts_[static_cast<std::size_t>(id)];
      if (count == 0) continue;  // seen already
      float& logit = at(id);
      logit = logit <= 0 ? logit * options_.repeat_penalty : logit / options_.repeat_penalty;
      logit -= static_cast<float>(count) * options_.frequency_penalty + options_.presence_penalty;
      count = 0;
    }
  }
  for (std::int32_t id : forbidden) at(id) = kNever;
}

void Sampler::keep_top_k() {
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  const auto k = options_.top_k == 0
                     ? candidates_.size()
                     : std::min(candidates_.size(), static_cast<std::size_t>(options_.top_k));
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(k);
  if (k < candidates_.size()) std::nth_element(candidates_.begin(), end, candidates_.end(), before);
  candidates_.resize(k);
  std::sort(candidates_.begin(), candidates_.end(), before);
}

// The smallest set, in descending order, whose probability reaches p; at least one.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  const double largest = static_cast<double>(candidates_.front().logit);
  double total = 0;
  for (const Candidate& c : candidates_) total += std::exp(static_cast<double>(c.logit) - largest);
  double sum = 0;
  std::size_t keep = 0;
  while (keep < candidates_.size()) {
    sum += std::exp(static_cast<double>(candidates_[keep].logit) - largest);
    ++keep;
    if (sum >= static_cast<double>(options_.top_p) * total) break;
  }
  candidates_.resize(keep);
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  const float lowest = candidates_.front().logit + std::log(options_.min_p);
  std::size_t keep = 1;
  while (keep < candidates_.size() && candidates_[keep].logit >= lowest) ++keep;
  candidates_.resize(keep);
}

std::int32_t Sampler::draw(std::uint64_t position) const {
  const double largest = static_cast<double>(candidates_.front().logit);
  const auto temperature = static_cast<double>(options_.temperature);
  weights_.clear();
  double total = 0;
  for (const Candidate& c : candidates_) {
    total += std::exp((static_cast<double>(c.logit) - largest) / temperature);
    weights_.push_back(total);
  }
  const double target = uniform_at(options_.seed, position) * total;
  const auto chosen = std::upper_bound(weights_.begin(), weights_.end(), target);
  const auto index = static_cast<std::size_t>(
      std::min(chosen - weights_.begin(), static_cast<std::ptrdiff_t>(weights_.size()) - 1));
  return candidates_[index].id;
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::uint64_t position,
                                     std::span<const std::int32_t> recent,
                                     std::span<const std::int32_t> forbidden) {
  if (!is_finite(logits)) return Error(ErrorCode::kNumeric, "logits are not finite");
  logits_.assign(logits.begin(), logits.end());
  adjust(recent, forbidden);
  if (options_.temperature <= 0) {
    const auto best = std::max_element(logits_.begin(), logits_.end());
    if (*best == kNever) return nothing_left();
    return static_cast<std::int32_t>(best - logits_.begin());
  }
  candidates_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i)
    if (logits_[i] != kNever) candidates_.push_back({logits_[i], static_cast<std::int32_t>(i)});
  if (candidates_.empty()) return nothing_left();
  keep_top_k();
  keep_top_p();
  keep_min_p();
  return draw(position);
}

}  // namespace tern::runtime
