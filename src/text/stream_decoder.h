// Tokens of an answer as they come, to text that can be shown at once: a chunk never ends inside a
// character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

namespace tern::text {

// Bytes to valid UTF-8. Bytes that are the beginning of a character are held back until it is
// complete; bytes that can never become one turn into U+FFFD at once, one per maximal subpart
// (Unicode standard, 3.9), a surrogate in three bytes when all of it is there. Not thread-safe.
class Utf8Stream {
 public:
  [[nodiscard]] std::string push(std::string_view bytes);
  // The end: U+FFFD for what is still held back, else nothing. The stream is as new afterwards.
  [[nodiscard]] std::string flush();

 private:
  std::string held_;  // at most 3 bytes
};

// Not thread-safe; the tokenizer must outlive it.
class StreamDecoder {
 public:
  // skip_special: control tokens are not shown. They then add nothing and do not interrupt a
  // character whose bytes stand around them.
  StreamDecoder(const Tokenizer& tokenizer, bool skip_special)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  // What may be shown after this token. An id outside of the vocabulary is an error, and changes
  // nothing.
  [[nodiscard]] Result<std::string> push(std::int32_t id);
  [[nodiscard]] std::string flush() { return utf8_.flush(); }

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  Utf8Stream utf8_;
};

}  // namespace tern::text
