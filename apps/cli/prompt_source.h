// Where the prompt of `tern run` comes from: -p, -f, the remaining words, or stdin.
#pragma once

#include <string>

#include "cli/commands.h"

namespace tern::cli {

struct Prompt {
  std::string model;
  std::string text;     // byte for byte, except for the escapes of -p
  std::string subject;  // "-p", a path, "stdin", "WORDS": for messages
};

// Errors: kUsage without a prompt (stdin is never read from a terminal), with two, or without a
// model; kNotFound, kIo.
[[nodiscard]] Prompt read_prompt(const Context& context);

}  // namespace tern::cli
