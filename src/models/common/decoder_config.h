// Hyper-parameters of a decoder-only transformer, read from a GGUF file and checked.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "io/gguf.h"
#include "tensor/rope_scaling.h"

namespace tern::models {

struct DecoderConfig {
  std::string architecture;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t feed_forward = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocabulary = 0;  // rows of the embedding table
  std::int64_t context_length = 0;
  float eps = 0;
  RopeParameters rope;
  RopeFrequencies frequencies;  // of `rope`
  bool is_tied = false;         // the head is the embedding table
  std::vector<std::string> warnings;

  [[nodiscard]] std::int64_t q_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return kv_heads * head_dim; }
  // Of q k before the softmax.
  [[nodiscard]] float attention_scale() const {
    return 1.0F / std::sqrt(static_cast<float>(head_dim));
  }
};

// What differs between families in how the keys are read.
struct ConfigRules {
  bool needs_freq_base = false;  // rope.freq_base is required
};

// Errors name the key, what it holds, and what was expected.
[[nodiscard]] Result<DecoderConfig> read_decoder_config(const io::GgufFile& file,
                                                        const std::string& architecture,
                                                        const ConfigRules& rules);

}  // namespace tern::models
