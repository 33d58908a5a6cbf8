// The command line and the environment, read by the table of flags.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/environment.h"
#include "cli/flags.h"

namespace tern::cli {

// Where a value came from, best rank first.
enum class Source : std::uint8_t { kCommandLine, kTernEnvironment, kLlamaEnvironment, kBuiltIn };

struct FlagValue {
  Source source = Source::kBuiltIn;
  std::string spelling;            // "-c", "TERN_ARG_CTX_SIZE": for messages
  std::vector<std::string> texts;  // one, except for lists; a switch has "on" or "off"
};

// What the user said. Every value has been checked against its row.
class Arguments {
 public:
  // Errors: kUsage, beginning with the flag or variable. Warnings (a variable of another program
  // that asks for what this build does not have) are added to `warnings`.
  [[nodiscard]] static Arguments parse(unsigned command, std::span<const std::string> words,
                                       const Environment& environment,
                                       std::vector<std::string>& warnings);

  [[nodiscard]] bool has(Flag flag) const { return values_.count(flag) != 0; }
  // The value, or the fallback of the table.
  [[nodiscard]] std::string text(Flag flag) const;
  [[nodiscard]] std::int64_t integer(Flag flag) const;
  [[nodiscard]] double number(Flag flag) const;
  [[nodiscard]] bool on(Flag flag) const;
  // kTextList: all of them. kNumbers: the numbers of all of them.
  [[nodiscard]] std::vector<std::string> list(Flag flag) const;
  [[nodiscard]] std::vector<std::int64_t> numbers(Flag flag) const;
  // As the user wrote it, or "--name": the subject of messages.
  [[nodiscard]] std::string spelling(Flag flag) const;
  [[nodiscard]] Source source(Flag flag) const;
  // Words that are no flags, in order.
  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  [[nodiscard]] unsigned command() const { return command_; }
  // "ctx-size = 4096 (TERN_ARG_CTX_SIZE)", one line per flag of the command, for --verbose.
  [[nodiscard]] std::vector<std::string> settings() const;

 private:
  void set(const FlagRow& row, Source source, std::string spelling, std::string text);
  void read_environment(const Environment& environment, std::vector<std::string>& warnings);
  std::size_t read_flag(std::span<const std::string> words, std::size_t at);

  unsigned command_ = kNoCommand;
  std::map<Flag, FlagValue> values_;
  std::vector<std::string> words_;
};

// "TERN_ARG_CTX_SIZE" of "ctx-size".
[[nodiscard]] std::string environment_twin(std::string_view name);

}  // namespace tern::cli
