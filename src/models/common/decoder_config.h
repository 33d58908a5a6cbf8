// Hyper-parameters of a decoder-only transformer, read from a GGUF file and checked.
#pragma once

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
};

// What differs between families in how the keys are read (formats.md 2.2).
struct ConfigRules {
  bool needs_head_dim = false;   // key_length is required
  bool needs_freq_base = false;  // rope.freq_base is required
};

// Errors: formats.md 11 (F11) and robustness.md 4.2: the key, what it holds, what was expected.
[[nodiscard]] Result<DecoderConfig> read_decoder_config(const io::GgufFile& file,
                                                        const std::string& architecture,
                                                        const ConfigRules& rules);

}  // namespace tern::models
