// The model shapes that make_random_model knows.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tern::tools {

struct Shape {
  std::string_view name;
  std::string_view architecture;  // general.architecture
  std::string_view pre_tokenizer;
  std::uint32_t layers;
  std::uint32_t hidden;
  std::uint32_t ffn;
  std::uint32_t heads;
  std::uint32_t kv_heads;
  std::uint32_t head_dim;
  std::uint32_t vocabulary;  // rows of the embedding, unless a vocabulary file says otherwise
  bool is_tied;
  float rope_theta;
  float rms_eps;
  std::uint32_t context;
  std::uint32_t yarn_original_context;  // 0: the family has no YaRN files
};

inline constexpr std::array kShapes = {
    Shape{"qwen3-tiny", "qwen3", "qwen2", 2, 256, 512, 4, 2, 64, 512, true, 1e6F, 1e-6F, 4096,
          1024},
    Shape{"qwen3-0.6b", "qwen3", "qwen2", 28, 1024, 3072, 16, 8, 128, 151669, true, 1e6F, 1e-6F,
          40960, 8192},
    Shape{"qwen3-1.7b", "qwen3", "qwen2", 28, 2048, 6144, 16, 8, 128, 151669, true, 1e6F, 1e-6F,
          40960, 8192},
    Shape{"qwen3-4b", "qwen3", "qwen2", 36, 2560, 9728, 32, 8, 128, 151669, true, 1e6F, 1e-6F,
          40960, 8192},
    Shape{"qwen3-8b", "qwen3", "qwen2", 36, 4096, 12288, 32, 8, 128, 151669, false, 1e6F, 1e-6F,
          40960, 16384},
    Shape{"llama-tiny", "llama", "llama-bpe", 2, 256, 512, 4, 2, 64, 512, false, 1e4F, 1e-5F, 4096,
          0},
    Shape{"llama-smollm2-135m", "llama", "smollm", 30, 576, 1536, 9, 3, 64, 49152, true, 1e5F,
          1e-5F, 8192, 0},
    Shape{"llama-3.2-1b", "llama", "llama-bpe", 16, 2048, 8192, 32, 8, 64, 128256, true, 5e5F,
          1e-5F, 131072, 0},
    Shape{"llama-3-8b", "llama", "llama-bpe", 32, 4096, 14336, 32, 8, 128, 128256, false, 5e5F,
          1e-5F, 8192, 0},
};

}  // namespace tern::tools
