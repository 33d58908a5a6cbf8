// The scalar formulas of rope_frequencies, written for reading.
#include "reference/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tern::reference {

double rope_frequency(double theta, int dims, int j) { return std::pow(theta, -2.0 * j / dims); }

double yarn_correction(const YarnFormula& yarn, double rotations) {
  return yarn.dims * std::log(yarn.original_context / (2 * std::numbers::pi * rotations)) /
         (2 * std::log(yarn.theta));
}

double yarn_frequency(const YarnFormula& yarn, int j) {
  const double lo = std::max(0.0, std::floor(yarn_correction(yarn, yarn.beta_fast)));
  const double hi = std::min(yarn.dims - 1.0, std::ceil(yarn_correction(yarn, yarn.beta_slow)));
  const double ramp = 1 - std::clamp((j - lo) / std::max(0.001, hi - lo), 0.0, 1.0);
  const double f = rope_frequency(yarn.theta, yarn.dims, j);
  return f * ramp + f / yarn.factor * (1 - ramp);
}

double yarn_attention_factor(double factor) { return 1 + 0.1 * std::log(factor); }

double llama3_frequency(double frequency, double factor, double low, double high,
                        double original_context) {
  const double rotations = original_context * frequency / (2 * std::numbers::pi);
  const double s = std::clamp((rotations - low) / (high - low), 0.0, 1.0);
  return frequency * ((1 - s) / factor + s);
}

}  // namespace tern::reference
