// Frequencies of the rotary position embedding, with long-context scaling.
#include "tensor/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "base/error.h"

namespace tern {
namespace {

Error out_of_range(const char* name, double value, const char* expected) {
  return fail(ErrorCode::kInvalidArgument, "rope: {} is {}, expected {}", name, value, expected);
}

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

Result<void> check(const RopeParameters& p) {
  if (p.dims < 0 || p.dims % 2 != 0) {
    return fail(ErrorCode::kInvalidArgument, "rope: {} rotated dimensions, expected an even number",
                p.dims);
  }
  if (!std::isfinite(p.theta) || p.theta <= 1) {
    return out_of_range("the frequency base", p.theta, "a number above 1");
  }
  const bool scaled = p.scaling == RopeScaling::kLinear || p.scaling == RopeScaling::kYarn ||
                      p.scaling == RopeScaling::kLlama3;
  if (scaled && !is_positive(p.factor)) {
    return out_of_range("the scaling factor", p.factor, "a positive number");
  }
  if (p.scaling == RopeScaling::kYarn || p.scaling == RopeScaling::kLlama3) {
    if (!is_positive(p.original_context)) {
      return out_of_range("the original context length", p.original_context, "a positive number");
    }
  }
  if (p.scaling == RopeScaling::kYarn) {
    if (!is_positive(p.beta_fast))
      return out_of_range("beta_fast", p.beta_fast, "a positive number");
    if (!is_positive(p.beta_slow))
      return out_of_range("beta_slow", p.beta_slow, "a positive number");
    if (!is_positive(p.attention_factor)) {
      return out_of_range("the attention factor", p.attention_factor, "a positive number");
    }
    if (!std::isfinite(p.ext_factor)) {
      return out_of_range("ext_factor", p.ext_factor, "a finite number");
    }
  }
  if (p.scaling == RopeScaling::kLlama3) {
    if (!is_positive(p.low_frequency_factor) ||
        !(p.high_frequency_factor > p.low_frequency_factor) ||
        !std::isfinite(p.high_frequency_factor)) {
      return fail(ErrorCode::kInvalidArgument,
                  "rope: low and high frequency factors are {} and {}, expected 0 < low < high",
                  p.low_frequency_factor, p.high_frequency_factor);
    }
  }
  if (p.scaling == RopeScaling::kFactors) {
    if (p.frequency_factors.size() != static_cast<std::size_t>(p.dims / 2)) {
      return fail(ErrorCode::kInvalidArgument,
                  "rope: {} frequency factors for {} pairs, expected one per pair",
                  p.frequency_factors.size(), p.dims / 2);
    }
    for (const double f : p.frequency_factors) {
      if (!is_positive(f)) return out_of_range("a frequency factor", f, "a positive number");
    }
  }
  return {};
}

// Pair index at which a frequency makes `rotations` turns in the original context.
double correction(const RopeParameters& p, double rotations) {
  return p.dims * std::log(p.original_context / (2 * std::numbers::pi * rotations)) /
         (2 * std::log(p.theta));
}

void scale_yarn(const RopeParameters& p, RopeFrequencies& result) {
  double lo = correction(p, p.beta_fast);
  double hi = correction(p, p.beta_slow);
  if (p.truncate) {
    lo = std::floor(lo);
    hi = std::ceil(hi);
  }
  lo = std::max(0.0, lo);
  hi = std::min(p.dims - 1.0, hi);
  for (std::size_t j = 0; j < result.frequency.size(); ++j) {
    const double along =
        std::clamp((static_cast<double>(j) - lo) / std::max(0.001, hi - lo), 0.0, 1.0);
    const double keep = (1 - along) * p.ext_factor;
    double& f = result.frequency[j];
    f = f * keep + f / p.factor * (1 - keep);
  }
  const double natural = 1 + 0.1 * std::log(p.factor);
  result.attention_factor =
      p.replaces_attention_factor ? p.attention_factor : natural * p.attention_factor;
}

void scale_llama3(const RopeParameters& p, RopeFrequencies& result) {
  for (double& f : result.frequency) {
    const double rotations = p.original_context * f / (2 * std::numbers::pi);
    const double s = std::clamp(
        (rotations - p.low_frequency_factor) / (p.high_frequency_factor - p.low_frequency_factor),
        0.0, 1.0);
    f *= (1 - s) / p.factor + s;
  }
}

}  // namespace

Result<RopeFrequencies> rope_frequencies(const RopeParameters& parameters) {
  TERN_TRY(check(parameters));
  RopeFrequencies result;
  result.frequency.resize(static_cast<std::size_t>(parameters.dims / 2));
  for (std::size_t j = 0; j < result.frequency.size(); ++j) {
    result.frequency[j] =
        std::pow(parameters.theta, -2.0 * static_cast<double>(j) / parameters.dims);
  }
  const bool plain_linear =
      parameters.scaling == RopeScaling::kLinear ||
      (parameters.scaling == RopeScaling::kYarn && parameters.ext_factor == 0);
  if (plain_linear) {
    for (double& f : result.frequency) f /= parameters.factor;
  } else if (parameters.scaling == RopeScaling::kYarn) {
    scale_yarn(parameters, result);
  } else if (parameters.scaling == RopeScaling::kLlama3) {
    scale_llama3(parameters, result);
  } else if (parameters.scaling == RopeScaling::kFactors) {
    for (std::size_t j = 0; j < result.frequency.size(); ++j) {
      result.frequency[j] /= parameters.frequency_factors[j];
    }
  }
  return result;
}

}  // namespace tern
