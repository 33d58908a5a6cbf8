// The chat template of a command line: which one, what it is given, and the tokens that come out.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"
#include "tern/chat_template.h"
#include "tern/engine.h"
#include "tern/tokenizer.h"

namespace tern::cli {

// Texts of the begin and end tokens of a vocabulary.
[[nodiscard]] RenderOptions render_options(const Tokenizer& tokenizer);

// Flags that have no effect under --raw, contradict each other, or do not parse. Throws kUsage;
// needs no model.
void check_chat_flags(const Arguments& arguments);

// The token ids of one question: through the chat template, or as it is with --raw. `subject` is
// where the text came from. Errors: kTemplate, kInvalidArgument (text that is not UTF-8).
[[nodiscard]] std::vector<std::int32_t> prompt_ids(const Context& context, const Model& model,
                                                   const std::string& subject,
                                                   const std::string& text);

}  // namespace tern::cli
