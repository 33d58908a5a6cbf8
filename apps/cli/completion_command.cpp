// `tern completion`: scripts for three shells, made from the tables.
#include "cli/cli_error.h"
#include "cli/commands.h"

namespace tern::cli {
namespace {

std::string command_names() {
  std::string out;
  for (const CommandRow& row : command_table()) {
    if (row.function != nullptr) out += (out.empty() ? "" : " ") + std::string(row.name);
  }
  return out;
}

std::string flags_of(const CommandRow& command) {
  std::string out;
  for (const FlagRow& row : flag_table()) {
    if (!row.available || (row.commands & command.bit) == 0) continue;
    const bool is_on = row.kind == ValueKind::kSwitch && row.fallback == "on";
    out += fmt::format("{}--{}{}", out.empty() ? "" : " ", is_on ? "no-" : "", row.name);
  }
  return out;
}

std::string bash_script() {
  std::string out =
      "_tern() {\n"
      "  local word=\"${COMP_WORDS[COMP_CWORD]}\"\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"" +
      command_names() +
      "\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  local flags=\n"
      "  case \"${COMP_WORDS[1]}\" in\n";
  for (const CommandRow& row : command_table()) {
    if (row.function == nullptr) continue;
    out += fmt::format("    {}) flags=\"{}\" ;;\n", row.name, flags_of(row));
  }
  return out +
         "  esac\n"
         "  case \"$word\" in\n"
         "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _tern tern\n";
}

std::string fish_script() {
  std::string out = "complete -c tern -n __fish_use_subcommand -f -a \"" + command_names() + "\"\n";
  for (const CommandRow& command : command_table()) {
    if (command.function == nullptr) continue;
    for (const FlagRow& row : flag_table()) {
      if (!row.available || (row.commands & command.bit) == 0) continue;
      const bool is_on = row.kind == ValueKind::kSwitch && row.fallback == "on";
      out += fmt::format("complete -c tern -n \"__fish_seen_subcommand_from {}\" -l {}{}\n",
                         command.name, is_on ? "no-" : "", row.name);
    }
  }
  return out;
}

}  // namespace

int completion_command(Context& context) {
  const std::vector<std::string>& words = context.arguments.words();
  const std::string shell = words.size() == 1 ? words[0] : "";
  if (shell == "bash") {
    context.output.write(bash_script());
  } else if (shell == "zsh") {
    context.output.write("autoload -U +X bashcompinit && bashcompinit\n" + bash_script());
  } else if (shell == "fish") {
    context.output.write(fish_script());
  } else {
    fail(ErrorCode::kUsage, "completion", "expected one shell: bash, zsh or fish");
  }
  return kExitOk;
}

}  // namespace tern::cli
