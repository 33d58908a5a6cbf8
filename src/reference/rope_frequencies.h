// rope_frequencies: the formulas of rope scaling (none, YaRN, llama3), one frequency per call.
#pragma once

namespace tern::reference {

// theta^(-2j/n)
[[nodiscard]] double rope_frequency(double theta, int dims, int j);

struct YarnFormula {
  double theta;
  int dims;
  double factor;
  double original_context;
  double beta_fast = 32;
  double beta_slow = 1;
};
[[nodiscard]] double yarn_correction(const YarnFormula& yarn, double rotations);
[[nodiscard]] double yarn_frequency(const YarnFormula& yarn, int j);
// 1 + 0.1 ln F
[[nodiscard]] double yarn_attention_factor(double factor);

// f ((1 - s)/F + s) with s = clamp((L f / (2 pi) - low) / (high - low), 0, 1)
[[nodiscard]] double llama3_frequency(double frequency, double factor, double low, double high,
                                      double original_context);

}  // namespace tern::reference
