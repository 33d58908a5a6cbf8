// The published tokenizers of this folder, and the files of test lines beside them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace tern::text {

// "qwen3" (from its tokenizer.json), "smollm2", "gpt-2", "llama-bpe", "qwen35" (from GGUF). Throws
// where it cannot be read.
[[nodiscard]] TokenizerData golden_tokenizer_data(const std::string& name);
[[nodiscard]] Tokenizer golden_tokenizer(const std::string& name);

// The lines of a file of JSON objects, here or among the unpacked ones. Lines end at LF only.
[[nodiscard]] std::vector<nlohmann::json> golden_lines(const std::string& file);
[[nodiscard]] std::string golden_text(const std::string& file);

}  // namespace tern::text
