// The table of all flags: parser, help, completion and environment twins are made from it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tern::cli {

// One bit per command, so that a flag can say where it belongs.
enum Command : unsigned {
  kNoCommand = 0,
  kRun = 1U << 0U,
  kInfo = 1U << 1U,
  kExplain = 1U << 2U,
  kBench = 1U << 3U,
  kTokenize = 1U << 4U,
  kLogits = 1U << 5U,
  kTemplate = 1U << 6U,
  kPerplexity = 1U << 7U,
  kHelp = 1U << 8U,
  kVersion = 1U << 9U,
  kCompletion = 1U << 10U,
  kCalibrate = 1U << 11U,
};
// Commands that plan for a device, those that load a model, and all.
inline constexpr unsigned kPlanning = kRun | kInfo | kExplain | kBench | kLogits | kPerplexity;
inline constexpr unsigned kLoading = kRun | kExplain | kBench | kLogits | kPerplexity;
inline constexpr unsigned kAllCommands = (1U << 12U) - 1U;

enum class Flag : std::uint8_t {
  kNone,  // a flag that this build refuses
  kModel,
  kCtxSize,
  kFit,
  kFitTarget,
  kBatchSize,
  kUbatchSize,
  kThreads,
  kThreadsBatch,
  kIsa,
  kDevice,
  kCacheTypeK,
  kCacheTypeV,
  kFlashAttn,
  kLoadMode,
  kMmap,
  kCheckTensors,
  kLayout,
  kActivations,
  kExact,
  kPin,
  kPrompt,
  kFile,
  kNPredict,
  kSystemPrompt,
  kSystemPromptFile,
  kChatTemplate,
  kChatTemplateFile,
  kChatTemplateKwargs,
  kJinja,
  kRaw,
  kEscape,
  kVerbosePrompt,
  kPerf,
  kSeed,
  kTemp,
  kTopK,
  kTopP,
  kMinP,
  kRepeatPenalty,
  kRepeatLastN,
  kPresencePenalty,
  kFrequencyPenalty,
  kLogitBias,
  kIgnoreEos,
  kMinTokens,
  kReversePrompt,
  kVerbose,
  kQuiet,
  kProgress,
  kColor,
  kHelp,
  kBenchPrompt,
  kBenchGen,
  kBenchPg,
  kBenchDepth,
  kBenchRepetitions,
  kBenchOutput,
  kBenchOutputErr,
  kBenchWarmup,
  kBenchDelay,
  kBenchProgress,
  kBenchCompare,
  kBenchThreads,
  kBenchBatch,
  kBenchUbatch,
  kBenchCacheTypeK,
  kBenchCacheTypeV,
  kRows,
  kTime,
  kJson,
  kHash,
  kKeys,
  kTensors,
  kTemplateText,
  kBos,
  kParseSpecial,
  kSpecial,
  kIds,
  kCount,
  kDecode,
  kDecodeFile,
  kJsonl,
  kMessagesJson,
  kNow,
  kTokenIds,
  kTokenIdsFile,
  kOutput,
  kForce,
  kLast,
  kDecodeLast,
  kTaps,
  kKlBase,
  kKlDivergence,
  kLimits,
  kProfile,
  kQuick,
  kShapes,
};

enum class ValueKind : std::uint8_t {
  kSwitch,  // no value; --no-NAME switches it off; --NAME=on|off
  kOnOff,   // on|off, true|false, 1|0; --no-NAME is off
  kInteger,
  kTokens,  // an integer; k, M and G are multiples of 1,024
  kNumber,
  kChoice,          // one of value_name, separated by '|'
  kOptionalChoice,  // the same; may be left out
  kText,
  kPath,
  kTextList,  // may be repeated
  kNumbers,   // a,b or first-last[+step|*mult]; may be repeated
};

enum class HelpGroup : std::uint8_t {
  kPrompt,
  kModel,
  kSampling,
  kTool,
  kOutput,
};

struct FlagRow {
  Flag id = Flag::kNone;
  std::string_view name;         // "ctx-size"
  std::string_view short_names;  // "-c", separated by spaces
  ValueKind kind = ValueKind::kSwitch;
  std::string_view value_name;  // "N", or the choices
  std::string_view fallback;    // what holds when nobody says anything, as text
  HelpGroup group = HelpGroup::kTool;
  unsigned commands = kAllCommands;
  std::string_view help;
  std::string_view aliases;     // other long names, separated by spaces
  std::string_view llama_twin;  // llama.cpp's environment variable of the same meaning
  double low = -9.3e18, high = 9.3e18;
  bool available = true;

  [[nodiscard]] constexpr FlagRow range(double smallest, double largest) const {
    FlagRow row = *this;
    row.low = smallest;
    row.high = largest;
    return row;
  }
  [[nodiscard]] constexpr FlagRow also(std::string_view names) const {
    FlagRow row = *this;
    row.aliases = names;
    return row;
  }
  [[nodiscard]] constexpr FlagRow twin(std::string_view variable) const {
    FlagRow row = *this;
    row.llama_twin = variable;
    return row;
  }
};

[[nodiscard]] std::span<const FlagRow> flag_table();
// The row of an available flag.
[[nodiscard]] const FlagRow& flag_row(Flag flag);
// The row whose long name, alias or short name (with its dash) is `spelling`, for this command:
// available rows first. Null when there is none. `any_command` also finds rows of other commands.
[[nodiscard]] const FlagRow* find_flag(std::string_view spelling, unsigned command,
                                       bool any_command);
[[nodiscard]] std::string_view help_group_title(HelpGroup group);

// Calls `each` for every word of a list that is separated by `separator`.
template <class Each>
void for_each_word(std::string_view list, char separator, Each each) {
  while (!list.empty()) {
    const std::size_t end = list.find(separator);
    if (end != 0) each(list.substr(0, end));
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
}

}  // namespace tern::cli
