// `tern help` and `--help`: made from the tables of commands and flags.
#include <algorithm>

#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/utf8_text.h"
#include "cli/values.h"

namespace tern::cli {
namespace {

constexpr std::size_t kNameColumns = 34;
constexpr std::size_t kHelpColumns = 100;

// "-c, --ctx-size N".
std::string usage_of(const FlagRow& row) {
  std::string text;
  for_each_word(row.short_names, ' ',
                [&](std::string_view name) { text += std::string(name) + ", "; });
  const bool is_switch = row.kind == ValueKind::kSwitch;
  text += is_switch && row.fallback == "on" ? "--[no-]" : "--";
  text += row.name;
  for_each_word(row.aliases, ' ',
                [&](std::string_view name) { text += ", --" + std::string(name); });
  if (row.kind == ValueKind::kOptionalChoice) {
    text += fmt::format(" [{}]", row.value_name);
  } else if (!row.value_name.empty()) {
    text += " " + std::string(row.value_name);
  }
  return text;
}

std::string flag_lines(const FlagRow& row) {
  const std::string usage = usage_of(row);
  std::string help(row.help);
  const bool shows_default = row.kind != ValueKind::kSwitch && !row.fallback.empty();
  if (shows_default) help += fmt::format(" [{}]", row.fallback);
  std::string out = "  " + usage;
  if (usage.size() + 3 > kNameColumns) {
    out += "\n" + std::string(kNameColumns, ' ');
  } else {
    out.resize(kNameColumns, ' ');
  }
  // Words, wrapped.
  std::size_t column = kNameColumns;
  for_each_word(help, ' ', [&](std::string_view word) {
    if (column > kNameColumns && column + 1 + word.size() > kHelpColumns) {
      out += "\n" + std::string(kNameColumns, ' ');
      column = kNameColumns;
    }
    if (column > kNameColumns) out += " ";
    out += word;
    column += word.size() + 1;
  });
  return out + "\n";
}

std::string overview() {
  std::string out = "usage: tern COMMAND [WORDS] [FLAGS]\n\n";
  for (const CommandRow& row : command_table()) {
    if (row.function == nullptr) continue;
    out += fmt::format("  {:<12}{:<20}{}\n", row.name, row.usage, row.summary);
  }
  out += "\nFlags of a command: tern help COMMAND. MODEL is a path to a GGUF file.\n";
  return out;
}

}  // namespace

std::string help_text(const CommandRow* command) {
  if (command == nullptr) return overview();
  std::string out = fmt::format("usage: tern {} {} [FLAGS]\n\n{}\n", command->name, command->usage,
                                command->summary);
  for (const HelpGroup group : {HelpGroup::kTool, HelpGroup::kPrompt, HelpGroup::kSampling,
                                HelpGroup::kModel, HelpGroup::kOutput}) {
    std::string lines;
    for (const FlagRow& row : flag_table()) {
      if (row.available && row.group == group && (row.commands & command->bit) != 0) {
        lines += flag_lines(row);
      }
    }
    if (!lines.empty()) out += fmt::format("\n{}\n{}", help_group_title(group), lines);
  }
  out +=
      "\nEvery flag has an environment twin (--ctx-size: TERN_ARG_CTX_SIZE); the command line "
      "wins.\n"
      "Numbers of tokens take k, M and G as multiples of 1,024.\n";
  if (command->bit == kRun) {
    out += "Where nothing is said about sampling, the model's own defaults stand.\n";
  }
  return out;
}

int help_command(Context& context) {
  const std::vector<std::string>& words = context.arguments.words();
  if (words.size() > 1) fail(ErrorCode::kUsage, words[1], "help takes one command");
  const CommandRow* row = nullptr;
  if (!words.empty()) {
    row = find_command(words[0]);
    if (row == nullptr) {
      fail(ErrorCode::kUsage, words[0], "there is no such command; tern help lists them");
    }
    if (row->function == nullptr) {
      fail(ErrorCode::kUsage, words[0], "this build does not have this command yet");
    }
  }
  context.output.write(help_text(row));
  return kExitOk;
}

}  // namespace tern::cli
