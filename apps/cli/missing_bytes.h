// A warning about the bytes of a text that its vocabulary cannot express.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tern/tokenizer.h"

namespace tern::cli {

// One warning that names the bytes of `text` that `ids`, its tokens, lack; none where all are
// there.
void warn_missing_bytes(const Tokenizer& tokenizer, std::string_view subject, std::string_view text,
                        std::span<const std::int32_t> ids);

}  // namespace tern::cli
