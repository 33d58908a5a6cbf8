// The table of commands.
#include "cli/commands.h"

#include <algorithm>
#include <array>

#include "cli/cli_error.h"

namespace tern::cli {
namespace {

constexpr CommandRow later(std::string_view name) { return {name, kNoCommand, "", "", nullptr}; }

constexpr std::array kCommands = {
    CommandRow{"run", kRun, "MODEL [WORDS ...]", "one answer, then exit", run_command},
    CommandRow{"bench", kBench, "MODEL ...", "speed, as tables people paste", bench_command},
    CommandRow{"info", kInfo, "MODEL", "what is in a file, what it needs, what will run it",
               info_command},
    CommandRow{"explain", kExplain, "MODEL", "every op: kernel, reason, bytes, FLOPs, time",
               explain_command},
    CommandRow{"tokenize", kTokenize, "MODEL", "text to token ids and back", tokenize_command},
    CommandRow{"template", kTemplate, "[MODEL]", "the chat template, rendered", template_command},
    CommandRow{"logits", kLogits, "MODEL", "logits and layer outputs as safetensors",
               logits_command},
    CommandRow{"perplexity", kPerplexity, "MODEL -f TEXT", "perplexity and KL divergence",
               perplexity_command},
    CommandRow{"calibrate", kCalibrate, "[MODEL]",
               "measures this machine, for the choice of kernels", calibrate_command},
    CommandRow{"help", kHelp, "[COMMAND]", "this list, or the flags of a command", help_command},
    CommandRow{"version", kVersion, "", "version, build, processor, limits", version_command},
    CommandRow{"completion", kCompletion, "bash|zsh|fish", "a completion script for a shell",
               completion_command},
    later("chat"),
    later("image"),
    later("serve"),
    later("convert"),
    later("quantize"),
    later("kernels"),
    later("devices"),
};

}  // namespace

std::span<const CommandRow> command_table() { return kCommands; }

const CommandRow* find_command(std::string_view name) {
  const auto* row = std::find_if(kCommands.begin(), kCommands.end(),
                                 [&](const CommandRow& each) { return each.name == name; });
  return row == kCommands.end() ? nullptr : row;
}

std::string only_model(const Arguments& arguments) {
  std::vector<std::string> paths = arguments.words();
  if (arguments.has(Flag::kModel)) paths.push_back(arguments.text(Flag::kModel));
  if (paths.empty()) {
    fail(ErrorCode::kUsage, "MODEL", "no model is named, and this build ships none; see tern help");
  }
  if (paths[0].empty()) fail(ErrorCode::kUsage, "MODEL", "the path of the model is empty");
  if (paths.size() > 1) {
    fail(ErrorCode::kUsage, paths[1], "this command takes one model; '{}' is one already",
         paths[0]);
  }
  return paths[0];
}

}  // namespace tern::cli
