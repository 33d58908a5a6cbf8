// Hugging Face tokenizers: tokenizer.json and the files that stand beside it.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer_data.h"

namespace tern::io {

// path: a folder with tokenizer.json, or that file. Beside it are read, where present:
// tokenizer_config.json (begin, end and padding token, add_bos_token, add_eos_token,
// chat_template), generation_config.json (eos_token_id) and chat_template.jinja, which wins over
// the template in the configuration.
//
// Byte-level BPE only. A model, pre-tokenizer, normalizer, post-processor, decoder or option that
// Tern does not have is refused by name (kUnsupported), a damaged file with the entry that is wrong
// (kInvalidFile). Messages start with the file's name; the caller prefixes the folder.
[[nodiscard]] Result<text::TokenizerData> read_tokenizer_json(const std::filesystem::path& path);

// The same from memory.
struct TokenizerTexts {
  std::string_view tokenizer;
  std::optional<std::string_view> config;
  std::optional<std::string_view> generation_config;
  std::optional<std::string_view> chat_template;
};
[[nodiscard]] Result<text::TokenizerData> parse_tokenizer_json(const TokenizerTexts& texts);

}  // namespace tern::io
