// What a public Tokenizer holds.
#pragma once

#include "tern/tokenizer.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

namespace tern {

struct Tokenizer::Impl {
  explicit Impl(text::Tokenizer t) : tokenizer(std::move(t)) {}
  text::Tokenizer tokenizer;
};

struct TokenStream::Impl {
  std::shared_ptr<const Tokenizer::Impl> owner;  // keeps the tokenizer alive
  text::StreamDecoder decoder;
};

}  // namespace tern
