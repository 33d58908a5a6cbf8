// Pre-tokenizers: how a text is cut into the pieces inside which tokens are merged. A new one is a
// rule (or several) in a file of its own and one row in pre_tokenizer.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/split_rules.h"

namespace tern::text {

struct PreTokenizer {
  std::string_view name;             // the value of tokenizer.ggml.pre
  bool normalizes_nfc;               // the text is brought to NFC first
  bool whole_words;                  // a piece that is itself a token skips the merges
  bool adds_begin;                   // a begin token is added where the file does not say
  std::span<const SplitRule> rules;  // each on the pieces that those before it left
  // The same as the components of a tokenizer.json, as io/tokenizer_json.h writes them down; empty
  // when Hugging Face has no such form.
  std::string_view huggingface;
};

[[nodiscard]] std::span<const PreTokenizer> pre_tokenizers();

// An unknown name is an error (kUnsupported) that lists the known ones: a wrong split is silent.
[[nodiscard]] Result<const PreTokenizer*> find_pre_tokenizer(std::string_view name);

namespace detail {
template <class Piece>
void split_by(std::span<const SplitRule> rules, std::string_view text, const CancelToken& cancel,
              const Piece& piece) {
  if (rules.empty()) return piece(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = rules.front()(text, at, cancel);
    split_by(rules.subspan(1), text.substr(at, end - at), cancel, piece);
    at = end;
  }
}
}  // namespace detail

// Calls piece(std::string_view) for every piece of text in order; together they are the text.
// Recursion goes as deep as there are rules. Throws Error(kCancelled) soon after the token is
// tripped.
template <class Piece>
void for_each_piece(const PreTokenizer& pre, std::string_view text, const Piece& piece,
                    const CancelToken& cancel = {}) {
  if (!text.empty()) detail::split_by(pre.rules, text, cancel, piece);
}

}  // namespace tern::text
