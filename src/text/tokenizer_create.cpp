// From what a file says to a tokenizer that works: every id, token and merge is checked here.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/limits.h"
#include "base/utf8.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace tern::text {

class TokenizerBuilder {
 public:
  explicit TokenizerBuilder(const TokenizerData& data) : data_(data) {}

  Result<Tokenizer> build() {
    TERN_TRY(check_sizes());
    TERN_TRY(set_options());
    TERN_TRY(set_pieces());
    TERN_TRY(set_merges());
    TERN_TRY(set_added());
    TERN_TRY(set_ids());
    set_words();
    TERN_TRY(check_chat_template());
    result_.chat_template_ = data_.chat_template;
    result_.warnings_ = data_.warnings;
    return std::move(result_);
  }

 private:
  Result<void> check_sizes() const;
  Result<void> set_options();
  Result<void> set_pieces();
  Result<std::string> piece_of(std::size_t id) const;
  Result<void> set_merges();
  Result<Merge> merge_of(std::size_t number) const;
  Result<void> set_added();
  Result<void> set_ids();
  void set_words();
  Result<void> check_chat_template() const;
  Result<void> check_id(std::string_view what, std::int32_t id) const;
  [[nodiscard]] bool is_control(std::int32_t id) const {
    return data_.types[static_cast<std::size_t>(id)] == TokenType::kControl;
  }

  const TokenizerData& data_;
  StringIndex index_;  // of data_.tokens; of equal tokens the first
  Tokenizer result_;
};

Result<Tokenizer> Tokenizer::create(const TokenizerData& data) {
  return TokenizerBuilder(data).build();
}

namespace {

template <class... Args>
Error bad(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidFile, format, std::forward<Args>(args)...);
}

std::string shown(std::string_view text) { return escape_for_message(text); }

// "<0x0A>" -> 10
std::optional<char> byte_of_name(std::string_view name) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
  };
  if (name.size() != 6 || !name.starts_with("<0x") || name[5] != '>') return std::nullopt;
  const int high = digit(name[3]), low = digit(name[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

// Texts of control tokens that end a turn or a text in the model families that are known.
constexpr std::array<std::string_view, 6> kEndTexts = {
    "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>", "<end_of_turn>"};

}  // namespace

Result<void> TokenizerBuilder::check_sizes() const {
  const std::size_t count = data_.tokens.size();
  if (count == 0) return bad("the vocabulary is empty");
  if (count > limits::kVocabulary) {
    return bad("the vocabulary has {} tokens; at most {} are read", count, limits::kVocabulary);
  }
  if (data_.types.size() != count) {
    return bad("there are {} token types for {} tokens", data_.types.size(), count);
  }
  for (std::size_t id = 0; id < count; ++id) {
    if (data_.tokens[id].size() > limits::kTokenBytes) {
      return bad("token {} has {} bytes; at most {} are read", id, data_.tokens[id].size(),
                 limits::kTokenBytes);
    }
  }
  return {};
}

Result<void> TokenizerBuilder::set_options() {
  const auto pre = find_pre_tokenizer(data_.pre);
  if (!pre.ok()) return pre.error();
  result_.pre_ = *pre;
  result_.nfc_ = data_.nfc.value_or((*pre)->normalizes_nfc);
  result_.whole_words_ = data_.whole_words.value_or((*pre)->whole_words);
  return {};
}

// The bytes that a token stands for. A normal token that is not written in the byte alphabet stands
// for its own text, as with Hugging Face.
Result<std::string> TokenizerBuilder::piece_of(std::size_t id) const {
  const std::string_view token = data_.tokens[id];
  switch (data_.types[id]) {
    case TokenType::kByte:
      if (const auto byte = byte_of_name(token)) return std::string(1, *byte);
      return bad("token {} is a byte token, but is spelled '{}'; these are <0x00> to <0xFF>", id,
                 shown(token));
    case TokenType::kControl:
    case TokenType::kUserDefined:
    case TokenType::kUnknown:
      return std::string(token);
    default:
      return unspell_bytes(token).value_or(std::string(token));
  }
}

Result<void> TokenizerBuilder::set_pieces() {
  const std::size_t count = data_.tokens.size();
  for (std::size_t id = 0; id < count; ++id) {
    const auto piece = piece_of(id);
    if (!piece.ok()) return piece.error();
    result_.pieces_.add(*piece);
  }
  std::vector<std::int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  index_ = StringIndex(data_.tokens, all);
  result_.types_ = data_.types;
  return {};
}

Result<Merge> TokenizerBuilder::merge_of(std::size_t number) const {
  const std::string_view merge = data_.merges[number];
  const std::size_t space = merge.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == merge.size()) {
    return bad("merge {} ('{}') does not have two tokens with a space between them", number,
               shown(merge));
  }
  const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
  std::string both(left);
  both += right;
  std::array<std::int32_t, 3> ids{};
  const std::array<std::string_view, 3> parts = {left, right, both};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto id = index_.find(data_.tokens, parts[i]);
    if (!id) {
      return bad("merge {} ('{}') {} '{}', which is no token", number, shown(merge),
                 i < 2 ? "names" : "makes", shown(parts[i]));
    }
    ids[i] = *id;
  }
  return Merge{ids[0], ids[1], ids[2], static_cast<std::uint32_t>(number)};
}

Result<void> TokenizerBuilder::set_merges() {
  if (data_.merges.size() > limits::kVocabulary) {
    return bad("there are {} merges; at most {} are read", data_.merges.size(),
               limits::kVocabulary);
  }
  std::vector<Merge> merges;
  merges.reserve(data_.merges.size());
  for (std::size_t i = 0; i < data_.merges.size(); ++i) {
    const auto merge = merge_of(i);
    if (!merge.ok()) return merge.error();
    // What a user typed must not become structure, whatever the merges say.
    if (!is_control(merge->result)) merges.push_back(*merge);
  }
  std::array<std::int32_t, 256> byte_tokens{};
  for (unsigned b = 0; b < 256; ++b) {
    const char byte = static_cast<char>(b);
    byte_tokens[b] =
        index_.find(data_.tokens, spell_bytes(std::string_view(&byte, 1))).value_or(-1);
  }
  if (std::all_of(byte_tokens.begin(), byte_tokens.end(), [](auto id) { return id < 0; })) {
    return bad("the vocabulary has no token for any single byte");
  }
  result_.bpe_ = Bpe(byte_tokens, MergeTable(data_.tokens.size(), merges));
  return {};
}

Result<void> TokenizerBuilder::set_added() {
  for (const AddedToken& t : data_.added) {
    TERN_TRY(check_id("added token '" + shown(t.content) + "'", t.id));
    if (t.content.empty()) return bad("added token {} has an empty content", t.id);
    if (t.content.size() > AddedTokenMatcher::kMaxContentBytes) {
      return bad("added token {} has {} bytes; at most {} are read", t.id, t.content.size(),
                 AddedTokenMatcher::kMaxContentBytes);
    }
    const std::string_view token = data_.tokens[static_cast<std::size_t>(t.id)];
    if (token != t.content) {
      return bad("added token {} is '{}' in one place and '{}' in another", t.id, shown(t.content),
                 shown(token));
    }
    const TokenType type = data_.types[static_cast<std::size_t>(t.id)];
    if (type != (t.special ? TokenType::kControl : TokenType::kUserDefined)) {
      return bad("added token {} ('{}') has the type of another kind of token, {}", t.id,
                 shown(t.content), static_cast<int>(type));
    }
    AddedToken added = t;
    // Without a normal form both ways of looking are one.
    added.normalized = t.normalized && result_.nfc_;
    std::string storage;
    if (added.normalized) added.content = std::string(to_nfc(t.content, storage));
    result_.added_.push_back(std::move(added));
  }
  const auto& added = result_.added_;
  result_.raw_matcher_ = {added, [](const AddedToken& t) { return !t.normalized; }};
  result_.normalized_matcher_ = {added, [](const AddedToken& t) { return t.normalized; }};
  result_.matcher_ = {added, [](const AddedToken&) { return true; }};
  return {};
}

Result<void> TokenizerBuilder::check_id(std::string_view what, std::int32_t id) const {
  if (id >= 0 && static_cast<std::size_t>(id) < data_.tokens.size()) return {};
  return bad("{} has the id {}, but ids go from 0 to {}", what, id, data_.tokens.size() - 1);
}

Result<void> TokenizerBuilder::set_ids() {
  const std::array<std::pair<std::string_view, std::optional<std::int32_t>>, 5> ids = {{
      {"the begin token", data_.begin_id},
      {"the end token", data_.end_id},
      {"the end-of-turn token", data_.end_of_turn_id},
      {"the unknown token", data_.unknown_id},
      {"the padding token", data_.padding_id},
  }};
  for (const auto& [what, id] : ids) {
    if (id) TERN_TRY(check_id(what, *id));
  }
  for (const std::int32_t id : data_.more_end_ids) TERN_TRY(check_id("an end token", id));

  result_.begin_ = data_.begin_id;
  result_.end_ = data_.end_id;
  result_.add_begin_ = data_.add_begin.value_or(result_.pre_->adds_begin && data_.begin_id);
  result_.add_end_ = data_.add_end;
  if (result_.add_begin_ && !data_.begin_id) {
    return bad("a begin token is to be added, but none is named");
  }
  if (result_.add_end_ && !data_.end_id) {
    return bad("an end token is to be added, but none is named");
  }

  auto& ends = result_.end_tokens_;
  ends = data_.more_end_ids;
  if (data_.end_id) ends.push_back(*data_.end_id);
  if (data_.end_of_turn_id) ends.push_back(*data_.end_of_turn_id);
  for (const AddedToken& t : data_.added) {
    const bool is_end = std::find(kEndTexts.begin(), kEndTexts.end(), t.content) != kEndTexts.end();
    if (t.special && is_end) ends.push_back(t.id);
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return {};
}

Result<void> TokenizerBuilder::check_chat_template() const {
  if (data_.chat_template.size() > limits::kTemplateSourceBytes) {
    return bad("the chat template has {} bytes; at most {} are read", data_.chat_template.size(),
               limits::kTemplateSourceBytes);
  }
  if (const auto at = find_invalid_utf8(data_.chat_template)) {
    return bad("the chat template is not valid UTF-8 at byte {}", *at);
  }
  return {};
}

void TokenizerBuilder::set_words() {
  if (!result_.whole_words_) return;
  std::vector<std::int32_t> words;
  for (std::size_t id = 0; id < data_.tokens.size(); ++id) {
    const TokenType type = data_.types[id];
    if (type == TokenType::kNormal || type == TokenType::kUserDefined) {
      words.push_back(static_cast<std::int32_t>(id));
    }
  }
  result_.words_ = StringIndex(result_.pieces_, words);
}

}  // namespace tern::text
