// Keys of a GGUF file to text::TokenizerData.
#include "io/gguf_tokenizer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/utf8.h"

namespace tern::io {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model";
constexpr std::string_view kPre = "tokenizer.ggml.pre";
constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
constexpr std::string_view kTypes = "tokenizer.ggml.token_type";
constexpr std::string_view kScores = "tokenizer.ggml.scores";
constexpr std::string_view kMerges = "tokenizer.ggml.merges";
constexpr std::string_view kTemplate = "tokenizer.chat_template";

using Id = std::optional<std::int32_t>;

Result<void> read_strings(const GgufFile& file, std::string_view key, text::StringTable& table) {
  TERN_ASSIGN(const GgufStrings strings, file.get_strings(key));
  if (strings.size() > limits::kVocabulary) {
    return fail(ErrorCode::kInvalidFile, "key '{}' has {} entries; at most {} are read", key,
                strings.size(), limits::kVocabulary);
  }
  table.reserve(strings.size(), file.find(key)->bytes.size());
  for (const std::string_view string : strings) table.add(string);
  return {};
}

Result<void> read_types(const GgufFile& file, text::TokenizerData& data) {
  const std::size_t count = data.tokens.size();
  if (!file.has(kTypes)) {
    data.types.assign(count, text::TokenType::kNormal);
    data.warnings.push_back(
        fmt::format("key '{}' is missing: all tokens are taken as ordinary ones, so that none is "
                    "found by its text",
                    kTypes));
    return {};
  }
  // Before the numbers are expanded: a file may claim far more of them than there are tokens.
  const GgufPair& pair = *file.find(kTypes);
  if (pair.type == GgufType::kArray && pair.count != count) {
    return fail(ErrorCode::kInvalidFile, "key '{}' has {} entries, but '{}' has {}", kTypes,
                pair.count, kTokens, count);
  }
  TERN_ASSIGN(const auto types, file.get_ints(kTypes));
  data.types.reserve(count);
  for (std::size_t id = 0; id < count; ++id) {
    if (types[id] < 1 || types[id] > 6) {
      return fail(ErrorCode::kInvalidFile,
                  "key '{}': token {} ('{}') has the type {}; types are "
                  "1 to 6",
                  kTypes, id, escape_for_message(data.tokens[id]), types[id]);
    }
    data.types.push_back(static_cast<text::TokenType>(types[id]));
  }
  return {};
}

// Scores are of no use to byte-pair encoding; a list of another length contradicts the file.
Result<void> check_scores(const GgufFile& file, std::size_t count) {
  const GgufPair* pair = file.find(kScores);
  if (pair == nullptr || pair->type != GgufType::kArray || pair->count == count) return {};
  return fail(ErrorCode::kInvalidFile, "key '{}' has {} entries, but '{}' has {}", kScores,
              pair->count, kTokens, count);
}

// Control and user-defined tokens are found by their texts. Of equal texts the first counts.
void read_added(text::TokenizerData& data) {
  std::size_t empty = 0;
  for (std::size_t id = 0; id < data.tokens.size(); ++id) {
    const bool special = data.types[id] == text::TokenType::kControl;
    if (!special && data.types[id] != text::TokenType::kUserDefined) continue;
    if (data.tokens[id].empty()) {
      ++empty;
      continue;
    }
    text::AddedToken token;
    token.id = static_cast<std::int32_t>(id);
    token.content = data.tokens[id];
    token.special = special;
    data.added.push_back(std::move(token));
  }
  if (empty > 0) {
    data.warnings.push_back(
        fmt::format("{} control or user-defined tokens have no text and are never found", empty));
  }
}

// may_be_none: -1 and 2^32-1 say that there is no such token.
Result<Id> read_id(const GgufFile& file, std::string_view name, bool may_be_none,
                   std::size_t count) {
  const std::string key = fmt::format("tokenizer.ggml.{}", name);
  if (!file.has(key)) return Id();
  TERN_ASSIGN(const std::int64_t id, file.get_i64(key));
  if (may_be_none && (id == -1 || id == 0xFFFFFFFF)) return Id();
  if (id < 0 || static_cast<std::uint64_t>(id) >= count) {
    return fail(ErrorCode::kInvalidFile, "key '{}' is {}, but ids go from 0 to {}", key, id,
                count - 1);
  }
  return Id(static_cast<std::int32_t>(id));
}

Result<void> read_ids(const GgufFile& file, text::TokenizerData& data) {
  const std::size_t count = data.tokens.size();
  TERN_ASSIGN(data.begin_id, read_id(file, "bos_token_id", true, count));
  TERN_ASSIGN(data.end_id, read_id(file, "eos_token_id", false, count));
  TERN_ASSIGN(data.end_of_turn_id, read_id(file, "eot_token_id", true, count));
  TERN_ASSIGN(data.unknown_id, read_id(file, "unknown_token_id", true, count));
  TERN_ASSIGN(data.padding_id, read_id(file, "padding_token_id", true, count));
  TERN_ASSIGN(const Id end_of_message, read_id(file, "eom_token_id", true, count));
  if (end_of_message) data.more_end_ids.push_back(*end_of_message);

  constexpr std::string_view kAddBegin = "tokenizer.ggml.add_bos_token";
  constexpr std::string_view kAddEnd = "tokenizer.ggml.add_eos_token";
  if (file.has(kAddBegin)) {
    TERN_ASSIGN(data.add_begin, file.get_bool(kAddBegin));
  }
  TERN_ASSIGN(data.add_end, file.get_bool(kAddEnd, false));
  return {};
}

}  // namespace

Result<text::TokenizerData> read_gguf_tokenizer(const GgufFile& file) {
  text::TokenizerData data;
  TERN_ASSIGN(const std::string_view model, file.get_string(kModel));
  if (model != "gpt2") {
    return fail(ErrorCode::kUnsupported,
                "tokenizer model '{}' is not supported; gpt2 (byte-level BPE) is",
                escape_for_message(model));
  }
  if (file.has(kPre)) {
    TERN_ASSIGN(data.pre, file.get_string(kPre));
  } else {
    data.pre = "default";
    data.warnings.push_back(
        fmt::format("key '{}' is missing: the text is split by the rule 'default', which may not "
                    "be the one that the model was trained with",
                    kPre));
  }
  TERN_TRY(read_strings(file, kTokens, data.tokens));
  TERN_TRY(read_types(file, data));
  TERN_TRY(check_scores(file, data.tokens.size()));
  TERN_TRY(read_strings(file, kMerges, data.merges));
  read_added(data);
  TERN_TRY(read_ids(file, data));
  if (file.has(kTemplate)) {
    TERN_ASSIGN(data.chat_template, file.get_string(kTemplate));
  }
  return data;
}

}  // namespace tern::io
