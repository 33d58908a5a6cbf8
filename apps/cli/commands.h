// The commands of the program: one function each, and the table that names them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/environment.h"
#include "cli/interrupt.h"
#include "cli/parse.h"
#include "cli/terminal.h"

namespace tern::cli {

struct Context {
  const Arguments& arguments;
  const Terminal& terminal;
  Output& output;
  const Interrupt& interrupt;
};

// Each returns the exit code; errors are thrown as tern::Error with "subject: sentence".
int run_command(Context& context);
int info_command(Context& context);
int explain_command(Context& context);
int bench_command(Context& context);
int tokenize_command(Context& context);
int logits_command(Context& context);
int template_command(Context& context);
int perplexity_command(Context& context);
int help_command(Context& context);
int version_command(Context& context);
int completion_command(Context& context);
int calibrate_command(Context& context);

struct CommandRow {
  std::string_view name;
  Command bit;
  std::string_view usage;  // what follows "tern NAME"
  std::string_view summary;
  int (*function)(Context&);  // null: known, and not in this build
};

[[nodiscard]] std::span<const CommandRow> command_table();
// Null when there is none of this name.
[[nodiscard]] const CommandRow* find_command(std::string_view name);
// The help of one command, or the list of commands when null.
[[nodiscard]] std::string help_text(const CommandRow* command);

// Words of a command that takes a model and nothing else. Errors: kUsage for none or too many.
[[nodiscard]] std::string only_model(const Arguments& arguments);

}  // namespace tern::cli
