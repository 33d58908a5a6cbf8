// Strict JSON as the files of a Hugging Face tokenizer need it: a small document, and beside it the
// two long lists, which go straight into tables.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/string_table.h"

namespace tern::io {

struct TokenizerDocument {
  nlohmann::json json;            // an object; model.vocab is replaced by {} and model.merges by []
  text::StringTable vocabulary;   // the keys of model.vocab in file order
  std::vector<std::int32_t> ids;  // their values, in [0, limits::kVocabulary)
  text::StringTable merges;       // "left right", whichever way the file writes them
};

// Errors (kInvalidFile) start with `name` and give line and column, or the entry. Refused: what is
// not strict JSON (trailing bytes, NaN, comments, lone surrogates, invalid UTF-8), nesting beyond
// limits::kJsonDepth, strings beyond limits::kJsonStringBytes, more than kMaxValues values outside
// of the two lists, a key given twice, an id that is no number from 0 on. The memory used is
// bounded by the size of the text.
[[nodiscard]] Result<TokenizerDocument> parse_tokenizer_document(std::string_view text,
                                                                 std::string_view name);

inline constexpr std::size_t kMaxValues = 500'000;

}  // namespace tern::io
