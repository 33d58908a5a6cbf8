// The tokenizer in a GGUF file: the keys tokenizer.ggml.* and tokenizer.chat_template.
#pragma once

#include "base/error.h"
#include "io/gguf.h"
#include "text/tokenizer_data.h"

namespace tern::io {

// Reads model (gpt2), pre, tokens, token_type, merges, bos/eos/eot/eom/unknown/padding_token_id,
// add_bos_token, add_eos_token, and the template. An absent `pre` means "default",
// with a warning, as does an absent token_type. Another model or `pre` is refused by name
// (kUnsupported), a missing or mistyped key as GgufFile does it. Messages carry no path.
[[nodiscard]] Result<text::TokenizerData> read_gguf_tokenizer(const GgufFile& file);

}  // namespace tern::io
