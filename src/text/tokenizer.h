// Text to token ids and back, for one vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tern/tokenizer.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pre_tokenizer.h"
#include "text/string_table.h"
#include "text/tokenizer_data.h"

namespace tern::text {

// Byte-level BPE. Added tokens are cut out of the text first; what lies between them is normalised
// (where the vocabulary wants that), split, and merged.
//
// Any bytes can be encoded. A byte that belongs to no valid UTF-8 sequence counts as a character
// that is neither letter nor digit nor white space, and normalisation leaves it alone; so decoding
// gives back the text (or the NFC of its valid stretches). A byte for which the vocabulary has no
// token is left out, as with Hugging Face; missing_bytes() tells which these are.
//
// Immutable: every function may be called from any thread.
class Tokenizer {
 public:
  // The most bytes of text in one call.
  static constexpr std::size_t kMaxTextBytes = Bpe::kMaxPieceBytes;

  // Errors (kInvalidFile, kUnsupported) name the token, merge or id that is wrong.
  [[nodiscard]] static Result<Tokenizer> create(const TokenizerData& data);

  // A token that is tripped ends the work within some thousand steps (kCancelled), here and in
  // encode_segments.
  [[nodiscard]] Result<std::vector<std::int32_t>> encode(std::string_view text,
                                                         const EncodeOptions& options,
                                                         const CancelToken& cancel = {}) const;

  // The ids of a rendered chat, without begin and end tokens. Texts of added tokens become these
  // tokens only where all of the text comes from the template. In the other segments they are
  // ordinary characters, and a stretch of this kind is encoded by itself; all the rest is encoded
  // as one text, across the borders of segments.
  [[nodiscard]] Result<std::vector<std::int32_t>> encode_segments(
      std::span<const TextSegment> segments, const CancelToken& cancel = {}) const;

  [[nodiscard]] std::int32_t size() const { return static_cast<std::int32_t>(types_.size()); }
  // The bytes of a token; an id outside of [0, size()) is an error (kInvalidArgument).
  [[nodiscard]] Result<std::string_view> piece(std::int32_t id) const;
  // The bytes of several tokens. skip_special leaves out control tokens.
  [[nodiscard]] Result<std::string> decode(std::span<const std::int32_t> ids,
                                           bool skip_special) const;
  // Control tokens, which skip_special leaves out; false for an id that does not exist.
  [[nodiscard]] bool is_special(std::int32_t id) const;
  [[nodiscard]] Result<TokenType> type(std::int32_t id) const;
  // The added token with this text.
  [[nodiscard]] std::optional<std::int32_t> find_added(std::string_view content) const;

  [[nodiscard]] std::optional<std::int32_t> begin_token() const { return begin_; }
  [[nodiscard]] std::optional<std::int32_t> end_token() const { return end_; }
  [[nodiscard]] bool adds_begin_token() const { return add_begin_; }
  [[nodiscard]] bool adds_end_token() const { return add_end_; }
  // Tokens that end an answer, ascending: those that the file names, and control tokens whose texts
  // are known to end a turn.
  [[nodiscard]] const std::vector<std::int32_t>& end_tokens() const { return end_tokens_; }
  [[nodiscard]] std::string_view pre_tokenizer() const { return pre_->name; }
  [[nodiscard]] bool normalizes_nfc() const { return nfc_; }
  // Bytes that cannot be encoded, ascending.
  [[nodiscard]] std::vector<std::uint8_t> missing_bytes() const;
  [[nodiscard]] const std::string& chat_template() const { return chat_template_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  friend class TokenizerBuilder;
  // Ids in the making, and the memory that encoding works in.
  struct Output {
    std::vector<std::int32_t> ids;
    BpeScratch scratch;
    std::string normal_form;
    CancelToken cancel;
  };

  Tokenizer() = default;
  [[nodiscard]] std::vector<std::int32_t> ids_of(std::string_view text,
                                                 const EncodeOptions& options, Output& out) const;
  [[nodiscard]] Result<std::vector<std::int32_t>> ids_of(std::span<const TextSegment> segments,
                                                         Output& out) const;
  void encode_parsed(std::string_view text, ParseSpecial parse, Output& out) const;
  void encode_plain(std::string_view text, Output& out) const;
  void encode_normalized(std::string_view text, Output& out) const;

  const PreTokenizer* pre_ = nullptr;  // a row of the constant table
  bool nfc_ = false;
  bool whole_words_ = false;
  StringTable pieces_;
  std::vector<TokenType> types_;
  StringIndex words_;  // pieces by content, where whole_words_
  Bpe bpe_;
  std::vector<AddedToken> added_;
  // Over added_: those that are looked for in the text as it is, in its normal form, and all.
  AddedTokenMatcher raw_matcher_, normalized_matcher_, matcher_;
  std::optional<std::int32_t> begin_, end_;
  bool add_begin_ = false;
  bool add_end_ = false;
  std::vector<std::int32_t> end_tokens_;
  std::string chat_template_;
  std::vector<std::string> warnings_;
};

}  // namespace tern::text
