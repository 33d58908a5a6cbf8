// Reads flags left to right, then the environment for what the command line left open.
#include "cli/parse.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "cli/cli_error.h"
#include "cli/commands.h"
#include "cli/values.h"

namespace tern::cli {
namespace {

bool is_choice(const FlagRow& row, std::string_view text) {
  bool found = false;
  for_each_word(row.value_name, '|', [&](std::string_view choice) { found |= choice == text; });
  return found;
}

std::string choices_of(const FlagRow& row) {
  std::string out;
  for_each_word(row.value_name, '|', [&](std::string_view choice) {
    out += (out.empty() ? "" : ", ") + std::string(choice);
  });
  return out;
}

[[noreturn]] void out_of_range(const FlagRow& row, std::string_view spelling,
                               std::string_view text) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (row.high > 1e18) {
    if (text.starts_with('-')) fail(ErrorCode::kUsage, spelling, "'{}' is below {}", text, row.low);
    fail(ErrorCode::kUsage, spelling, "'{}' is outside of {} .. {}", text, row.low, kMost);
  }
  fail(ErrorCode::kUsage, spelling, "'{}' is outside of {} .. {}", text, row.low, row.high);
}

// Digits, with a sign and k, M or G perhaps: a number that no integer of 64 bits holds.
bool is_large_number(std::string_view text) {
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  if (!text.empty() && std::string_view("kKmMgG").find(text.back()) != std::string_view::npos) {
    text.remove_suffix(1);
  }
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

void check_range(const FlagRow& row, std::string_view spelling, std::string_view text,
                 double value) {
  if (!(value >= row.low && value <= row.high)) out_of_range(row, spelling, text);
}

void check_numbers(const FlagRow& row, const std::string& spelling, const std::string& text) {
  std::string_view rest = text;
  for (std::size_t element = 1;; ++element) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const auto numbers = parse_numbers(part);
    if (!numbers && is_large_number(part)) out_of_range(row, spelling, part);
    if (!numbers) {
      fail(ErrorCode::kUsage, spelling,
           "element {} of the list, '{}', is no number and no range first-last[+step|*factor]",
           element, part);
    }
    for (const std::int64_t each : *numbers) {
      check_range(row, spelling, part, static_cast<double>(each));
    }
    if (comma == std::string_view::npos) return;
    rest.remove_prefix(comma + 1);
  }
}

void check_value(const FlagRow& row, const std::string& spelling, const std::string& text) {
  switch (row.kind) {
    case ValueKind::kSwitch:
    case ValueKind::kOnOff:
      if (!parse_on_off(text)) {
        fail(ErrorCode::kUsage, spelling, "'{}' is neither on nor off", text);
      }
      return;
    case ValueKind::kInteger:
    case ValueKind::kTokens: {
      const auto value = row.kind == ValueKind::kTokens ? parse_tokens(text) : parse_integer(text);
      if (!value && is_large_number(text)) out_of_range(row, spelling, text);
      if (!value) fail(ErrorCode::kUsage, spelling, "'{}' is not a whole number", text);
      return check_range(row, spelling, text, static_cast<double>(*value));
    }
    case ValueKind::kNumber: {
      const auto value = parse_number(text);
      if (!value) fail(ErrorCode::kUsage, spelling, "'{}' is not a number", text);
      return check_range(row, spelling, text, *value);
    }
    case ValueKind::kChoice:
    case ValueKind::kOptionalChoice:
      if (!is_choice(row, text)) {
        fail(ErrorCode::kUsage, spelling, "'{}' is not known here; this build has: {}", text,
             choices_of(row));
      }
      return;
    case ValueKind::kNumbers:
      return check_numbers(row, spelling, text);
    case ValueKind::kPath:
      if (text.empty()) fail(ErrorCode::kUsage, spelling, "the path is empty");
      return;
    case ValueKind::kText:
    case ValueKind::kTextList:
      return;
  }
}

std::vector<std::string> spellings_for(unsigned command) {
  std::vector<std::string> names;
  for (const FlagRow& row : flag_table()) {
    if (!row.available || (row.commands & command) == 0) continue;
    names.push_back("--" + std::string(row.name));
    for_each_word(row.aliases, ' ',
                  [&](std::string_view n) { names.push_back("--" + std::string(n)); });
    for_each_word(row.short_names, ' ', [&](std::string_view n) { names.emplace_back(n); });
  }
  return names;
}

// "tern help run"
std::string help_of(unsigned command) {
  for (const CommandRow& row : command_table()) {
    if (row.bit == command) return "tern help " + std::string(row.name);
  }
  return "tern help";
}

[[noreturn]] void unknown_flag(const std::string& spelling, unsigned command) {
  const std::string near = nearest_name(spelling, spellings_for(command));
  if (near.empty()) {
    fail(ErrorCode::kUsage, spelling, "there is no such flag; {} lists them", help_of(command));
  }
  fail(ErrorCode::kUsage, spelling, "there is no such flag; did you mean {}?", near);
}

struct Found {
  const FlagRow* row = nullptr;
  bool is_negated = false;
};

// --name, an alias, --no-name for switches, or a short name.
Found look_up(const std::string& spelling, unsigned command) {
  if (const FlagRow* row = find_flag(spelling, command, true)) return {row, false};
  if (spelling.rfind("--no-", 0) == 0) {
    const FlagRow* row = find_flag("--" + spelling.substr(5), command, true);
    if (row != nullptr && (!row->available || row->kind == ValueKind::kSwitch ||
                           row->kind == ValueKind::kOnOff || row->id == Flag::kParseSpecial)) {
      return {row, true};
    }
  }
  return {};
}

}  // namespace

std::string environment_twin(std::string_view name) {
  std::string twin = "TERN_ARG_";
  for (const char c : name) {
    twin += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return twin;
}

void Arguments::set(const FlagRow& row, Source source, std::string spelling, std::string text) {
  check_value(row, spelling, text);
  FlagValue& value = values_[row.id];
  const bool is_list = row.kind == ValueKind::kTextList || row.kind == ValueKind::kNumbers;
  if (!is_list || value.source != source) value.texts.clear();
  value.source = source;
  value.spelling = std::move(spelling);
  value.texts.push_back(std::move(text));
}

std::size_t Arguments::read_flag(std::span<const std::string> words, std::size_t at) {
  std::string spelling = words[at];
  std::string inline_value;
  bool has_inline = false;
  if (spelling.rfind("--", 0) == 0) {
    if (const std::size_t equals = spelling.find('='); equals != std::string::npos) {
      inline_value = spelling.substr(equals + 1);
      has_inline = true;
      spelling.resize(equals);
    }
    std::replace(spelling.begin(), spelling.end(), '_', '-');
  }
  const auto [row, is_negated] = look_up(spelling, command_);
  if (row == nullptr) unknown_flag(spelling, command_);
  if (!row->available) fail(ErrorCode::kUsage, spelling, "this build does not have this flag");
  if ((row->commands & command_) == 0) {
    fail(ErrorCode::kUsage, spelling, "this command does not take this flag; see {}",
         help_of(command_));
  }
  if (is_negated) {
    if (has_inline) fail(ErrorCode::kUsage, spelling, "it takes no value");
    set(*row, Source::kCommandLine, spelling, row->id == Flag::kParseSpecial ? "none" : "off");
    return at + 1;
  }
  const bool may_stand_alone =
      row->kind == ValueKind::kSwitch || row->kind == ValueKind::kOptionalChoice;
  if (!has_inline && may_stand_alone) {
    const bool takes_next = row->kind == ValueKind::kOptionalChoice && at + 1 < words.size() &&
                            is_choice(*row, words[at + 1]);
    if (takes_next) {
      set(*row, Source::kCommandLine, spelling, words[at + 1]);
    } else if (row->kind == ValueKind::kSwitch) {
      set(*row, Source::kCommandLine, spelling, "on");
    } else {
      // Without a value: lines for --progress, colours for --color, everything for --parse-special.
      set(*row, Source::kCommandLine, spelling,
          row->id == Flag::kBenchProgress ? "plain"
          : row->id == Flag::kColor       ? "on"
                                          : "all");
    }
    return at + (takes_next ? 2U : 1U);
  }
  if (!has_inline) {
    if (at + 1 == words.size()) {
      fail(ErrorCode::kUsage, spelling, "a value is missing ({}); see {}", row->value_name,
           help_of(command_));
    }
    inline_value = words[at + 1];
  }
  set(*row, Source::kCommandLine, spelling, std::move(inline_value));
  return at + (has_inline ? 1U : 2U);
}

void Arguments::read_environment(const Environment& environment,
                                 std::vector<std::string>& warnings) {
  std::vector<std::string> known;
  for (const FlagRow& row : flag_table()) {
    const std::string twin = environment_twin(row.name);
    known.push_back(twin);
    const auto own = environment.get(twin);
    const auto llama = row.llama_twin.empty() ? std::nullopt : environment.get(row.llama_twin);
    if ((row.commands & command_) == 0) continue;
    if (!row.available) {
      if (own) fail(ErrorCode::kUsage, twin, "this build does not have --{}", row.name);
      if (llama) {
        warnings.push_back(
            fmt::format("{}: this build does not have --{}; the variable is not used",
                        row.llama_twin, row.name));
      }
      continue;
    }
    if (values_.count(row.id) != 0) continue;
    if (own) {
      set(row, Source::kTernEnvironment, twin, *own);
    } else if (llama) {
      set(row, Source::kLlamaEnvironment, std::string(row.llama_twin), *llama);
    }
  }
  for (const auto& [name, value] : environment.values()) {
    if (name.rfind("TERN_ARG_", 0) != 0 ||
        std::find(known.begin(), known.end(), name) != known.end()) {
      continue;
    }
    const std::string near = nearest_name(name, known);
    fail(ErrorCode::kUsage, name, "no flag answers to this variable{}",
         near.empty() ? "" : "; did you mean " + near + "?");
  }
}

Arguments Arguments::parse(unsigned command, std::span<const std::string> words,
                           const Environment& environment, std::vector<std::string>& warnings) {
  Arguments out;
  out.command_ = command;
  std::size_t at = 0;
  while (at < words.size()) {
    const std::string& word = words[at];
    if (word == "--") {
      out.words_.insert(out.words_.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                        words.end());
      break;
    }
    if (word.size() > 1 && word[0] == '-') {
      at = out.read_flag(words, at);
    } else {
      out.words_.push_back(word);
      ++at;
    }
  }
  out.read_environment(environment, warnings);
  return out;
}

std::string Arguments::text(Flag flag) const {
  const auto found = values_.find(flag);
  if (found == values_.end()) return std::string(flag_row(flag).fallback);
  return found->second.texts.back();
}

std::int64_t Arguments::integer(Flag flag) const { return parse_tokens(text(flag)).value_or(0); }

double Arguments::number(Flag flag) const { return parse_number(text(flag)).value_or(0); }

bool Arguments::on(Flag flag) const { return parse_on_off(text(flag)).value_or(false); }

std::vector<std::string> Arguments::list(Flag flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? std::vector<std::string>{} : found->second.texts;
}

std::vector<std::int64_t> Arguments::numbers(Flag flag) const {
  std::vector<std::int64_t> out;
  std::vector<std::string> texts = list(flag);
  if (texts.empty()) texts.emplace_back(flag_row(flag).fallback);
  for (const std::string& each : texts) {
    const auto numbers = parse_numbers(each);
    if (numbers) out.insert(out.end(), numbers->begin(), numbers->end());
  }
  return out;
}

std::string Arguments::spelling(Flag flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? "--" + std::string(flag_row(flag).name) : found->second.spelling;
}

Source Arguments::source(Flag flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? Source::kBuiltIn : found->second.source;
}

std::vector<std::string> Arguments::settings() const {
  std::vector<std::string> lines;
  for (const FlagRow& row : flag_table()) {
    if (!row.available || (row.commands & command_) == 0 || row.id == Flag::kHelp) continue;
    const auto found = values_.find(row.id);
    std::string value(row.fallback);
    if (found != values_.end()) value = fmt::format("{}", fmt::join(found->second.texts, ", "));
    if (value.empty()) value = "(none)";
    lines.push_back(
        fmt::format("{} = {} ({})", row.name, value,
                    found == values_.end() ? std::string("built in") : found->second.spelling));
  }
  return lines;
}

}  // namespace tern::cli
