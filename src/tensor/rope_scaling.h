// Frequencies of the rotary position embedding, with long-context scaling (formats.md, section 3).
#pragma once

#include <cstdint>
#include <vector>

#include "tern/error.h"

namespace tern {

enum class RopeScaling : std::uint8_t {
  kNone,
  kLinear,   // f / factor
  kYarn,     // a ramp between f and f / factor, and an attention factor
  kLlama3,   // a ramp between f and f / factor by the number of rotations in the original context
  kFactors,  // f / frequency_factors[j], as in the tensor rope_freqs.weight of a llama GGUF
};

struct RopeParameters {
  int dims = 0;  // rotated elements of a head; even
  double theta = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;            // linear, yarn, llama3
  double original_context = 0;  // yarn, llama3
  // yarn
  double beta_fast = 32;
  double beta_slow = 1;
  double ext_factor = 1;        // 0: plain linear scaling with attention factor 1
  bool truncate = true;         // floor and ceil of the corrections
  double attention_factor = 1;  // multiplies 1 + 0.1 ln(factor)
  bool replaces_attention_factor =
      false;  // attention_factor replaces it (Hugging Face's attention_factor)
  // llama3
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  std::vector<double> frequency_factors;  // kFactors: [dims / 2]
};

struct RopeFrequencies {
  std::vector<double> frequency;  // [dims / 2], radians per position
  double attention_factor = 1;    // multiplies cos and sin, of queries and of keys
};

// Pure. Errors: kInvalidArgument naming the parameter that is out of range.
[[nodiscard]] Result<RopeFrequencies> rope_frequencies(const RopeParameters& parameters);

}  // namespace tern
