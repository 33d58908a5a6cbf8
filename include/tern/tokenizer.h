// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/cancel.h"
#include "tern/error.h"

namespace tern {

// Which texts of special tokens become these tokens.
enum class ParseSpecial : std::uint8_t {
  kAll,      // control and user-defined tokens: text of a template
  kDefined,  // only user-defined ones
  kNone,     // none: what a user typed is ordinary text
};

struct EncodeOptions {
  bool add_special = true;  // the begin and end tokens that the file asks for
  ParseSpecial parse_special = ParseSpecial::kAll;
};

// A stretch of a prompt with its origin: special tokens are parsed in template text only.
struct TextSegment {
  std::string text;
  bool from_template = false;
};

// Turns the bytes of tokens into text that never ends inside a UTF-8 character. Not thread-safe;
// cheap to make.
class TokenStream {
 public:
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;
  ~TokenStream();
  // What may be shown after this token; bytes of an unfinished character are held back.
  [[nodiscard]] Result<std::string> push(std::int32_t id);
  // What is left at the end (U+FFFD for bytes that never became a character).
  [[nodiscard]] std::string flush();

 private:
  friend class Tokenizer;
  struct Impl;
  explicit TokenStream(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Immutable after loading; every function may be called from any thread. Copies share their data.
class Tokenizer {
 public:
  struct Impl;

  // From a GGUF file (a vocabulary-only one will do) or a folder with tokenizer.json.
  [[nodiscard]] static Result<Tokenizer> open(const std::string& path);

  // A token that is tripped ends the work soon (kCancelled), here and in encode_chat.
  [[nodiscard]] Result<std::vector<std::int32_t>> encode(std::string_view text,
                                                         const EncodeOptions& options,
                                                         const CancelToken& cancel = {}) const;
  // Segments of a rendered chat: the template's own texts may become special tokens, the rest never
  // does.
  [[nodiscard]] Result<std::vector<std::int32_t>> encode_chat(std::span<const TextSegment> segments,
                                                              const CancelToken& cancel = {}) const;
  // Bytes for which the vocabulary has no token, ascending: texts lose them when they are encoded.
  [[nodiscard]] std::vector<std::uint8_t> missing_bytes() const;

  // The bytes of a token; an id outside of the vocabulary is an error.
  [[nodiscard]] Result<std::string> piece(std::int32_t id) const;
  // The bytes of several; special tokens as their texts, or left out.
  [[nodiscard]] Result<std::string> decode(std::span<const std::int32_t> ids,
                                           bool skip_special) const;
  [[nodiscard]] TokenStream stream(bool skip_special) const;

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] bool is_special(std::int32_t id) const;
  // Tokens that end an answer: those of the file, and the known ones by their text.
  [[nodiscard]] const std::vector<std::int32_t>& end_tokens() const;
  // -1: none.
  [[nodiscard]] std::int32_t begin_token() const;
  [[nodiscard]] bool adds_begin_token() const;
  // The chat template that came with the vocabulary; empty: none.
  [[nodiscard]] const std::string& chat_template() const;
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  explicit Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tern
