// How the next token is chosen from the logits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tern {

// Order: logit bias > penalties > top-k > top-p > min-p > temperature > draw. The draw comes from a
// counter-based generator keyed by (seed, position), so that a continued answer draws the same
// numbers. Temperature 0 is arg max, lowest id on ties, and draws nothing.
struct SamplingOptions {
  std::uint64_t seed = 0;
  float temperature = 0.8F;
  int top_k = 40;            // 0: off
  float top_p = 0.95F;       // 1: off; keeps at least one
  float min_p = 0.05F;       // relative to the largest; 0: off
  float repeat_penalty = 1;  // 1: off
  int repeat_last_n = 64;    // window of all penalties; 0: off, -1: the whole context
  float presence_penalty = 0;
  float frequency_penalty = 0;
  std::vector<std::pair<std::int32_t, float>> logit_bias{};
};

}  // namespace tern
