// Chooses the one source of the prompt and reads it.
#include "cli/prompt_source.h"

#include "cli/cli_error.h"
#include "cli/file_text.h"
#include "cli/values.h"

namespace tern::cli {
namespace {

// The words after the model, joined by spaces.
std::string joined(const std::vector<std::string>& words, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < words.size(); ++i) text += (i > first ? " " : "") + words[i];
  return text;
}

void refuse_escape(const Arguments& arguments, std::string_view source) {
  if (arguments.source(Flag::kEscape) == Source::kCommandLine && arguments.on(Flag::kEscape) &&
      !arguments.has(Flag::kReversePrompt)) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kEscape),
         "{} is taken byte for byte; escapes are for -p and -r", source);
  }
}

}  // namespace

Prompt read_prompt(const Context& context) {
  const Arguments& arguments = context.arguments;
  const std::vector<std::string>& words = arguments.words();
  Prompt prompt;
  std::size_t first_word = 0;
  if (arguments.has(Flag::kModel)) {
    prompt.model = arguments.text(Flag::kModel);
  } else if (!words.empty()) {
    prompt.model = words[0];
    first_word = 1;
  } else {
    fail(ErrorCode::kUsage, "MODEL",
         "no model is named, and this build ships none: tern run MODEL -p TEXT");
  }
  if (prompt.model.empty()) fail(ErrorCode::kUsage, "MODEL", "the path of the model is empty");
  const bool has_words = words.size() > first_word;
  const bool has_text = arguments.has(Flag::kPrompt);
  const bool has_file = arguments.has(Flag::kFile);
  if (int{has_words} + int{has_text} + int{has_file} > 1) {
    fail(ErrorCode::kUsage, has_text ? arguments.spelling(Flag::kPrompt) : "WORDS",
         "the prompt comes from one place: -p, -f, words after the model, or stdin");
  }
  if (has_text) {
    prompt.subject = arguments.spelling(Flag::kPrompt);
    prompt.text = arguments.text(Flag::kPrompt);
    if (arguments.on(Flag::kEscape)) prompt.text = unescape(prompt.text);
  } else if (has_words) {
    prompt.subject = "WORDS";
    prompt.text = joined(words, first_word);
    refuse_escape(arguments, "what is on the command line");
  } else if (has_file) {
    prompt.subject = arguments.text(Flag::kFile);
    if (prompt.subject == "-") prompt.subject = "stdin";
    refuse_escape(arguments, "a file");
    prompt.text = read_file(arguments.text(Flag::kFile), InputLimit::kPrompt, context.interrupt);
  } else if (context.terminal.in_is_terminal) {
    fail(ErrorCode::kUsage, "prompt", "there is none: give -p TEXT, -f FILE, words, or a pipe");
  } else {
    prompt.subject = "stdin";
    refuse_escape(arguments, "stdin");
    prompt.text = read_file("-", InputLimit::kPrompt, context.interrupt);
  }
  if (prompt.text.empty()) {
    fail(ErrorCode::kUsage, prompt.subject,
         "the prompt is empty: give -p TEXT, -f FILE, or words; see tern help run");
  }
  return prompt;
}

}  // namespace tern::cli
