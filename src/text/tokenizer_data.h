// What a file says about its tokenizer, as plain data: the readers in io/ fill it in, and
// Tokenizer::create() checks it and makes something useful of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/string_table.h"

namespace tern::text {

enum class TokenizerModel : std::uint8_t {
  kByteLevelBpe,  // "gpt2" in GGUF, "BPE" with ByteLevel in a tokenizer.json
};

// The numbers are those of tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // structure of a prompt: never made from text that a user typed
  kUserDefined = 4,  // an added token that is shown, such as <think>
  kUnused = 5,
  kByte = 6,  // spelled <0x00> to <0xFF>
};

struct TokenizerData {
  TokenizerModel model = TokenizerModel::kByteLevelBpe;
  std::string pre;                  // a name of pre_tokenizers()
  std::optional<bool> nfc;          // the file's own word against what `pre` says
  std::optional<bool> whole_words;  // the same
  StringTable tokens;               // as spelled in the file: normal ones in the byte alphabet
  std::vector<TokenType> types;     // one per token
  StringTable merges;               // "left right", in the order of their rank
  std::vector<AddedToken> added;    // each with the id of its token
  std::optional<std::int32_t> begin_id, end_id, end_of_turn_id, unknown_id, padding_id;
  std::vector<std::int32_t> more_end_ids;  // further tokens that end an answer
  std::optional<bool> add_begin;           // absent: what `pre` says
  bool add_end = false;
  std::string chat_template;          // empty: none
  std::vector<std::string> warnings;  // sentences for the user
};

}  // namespace tern::text
