// Flags, their ranks and refusals, and values.
#include "cli/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/commands.h"
#include "cli/values.h"
#include "tern/error.h"

namespace tern::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Variables = std::map<std::string, std::string, std::less<>>;

Arguments parse(unsigned command, const std::vector<std::string>& words, Variables variables = {}) {
  std::vector<std::string> warnings;
  return Arguments::parse(command, words, Environment(std::move(variables)), warnings);
}

std::string refusal(unsigned command, const std::vector<std::string>& words,
                    Variables variables = {}) {
  try {
    (void)parse(command, words, std::move(variables));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  return "accepted";
}

TEST(Parse, ReadsLongShortAndJoinedForms) {
  const Arguments a =
      parse(kRun, {"model.gguf", "-c", "4k", "--temp=0.25", "--top-k", "7", "hello"});
  EXPECT_EQ(a.integer(Flag::kCtxSize), 4096);
  EXPECT_DOUBLE_EQ(a.number(Flag::kTemp), 0.25);
  EXPECT_EQ(a.integer(Flag::kTopK), 7);
  EXPECT_THAT(a.words(), ElementsAre("model.gguf", "hello"));
}

TEST(Parse, ReadsShortNamesOfSeveralLetters) {
  const Arguments a = parse(kRun, {"-ub", "128", "-ctk", "f32", "-sys", "be terse", "-tb", "2"});
  EXPECT_EQ(a.integer(Flag::kUbatchSize), 128);
  EXPECT_EQ(a.text(Flag::kCacheTypeK), "f32");
  EXPECT_EQ(a.text(Flag::kSystemPrompt), "be terse");
}

TEST(Parse, TakesTheLastOfTwoExceptForLists) {
  const Arguments a = parse(kRun, {"-n", "3", "-n", "5", "-r", "x", "--stop", "y"});
  EXPECT_EQ(a.integer(Flag::kNPredict), 5);
  EXPECT_THAT(a.list(Flag::kReversePrompt), ElementsAre("x", "y"));
}

TEST(Parse, TakesValuesThatBeginWithADash) {
  const Arguments a = parse(kRun, {"-n", "-1", "-p", "--no flag"});
  EXPECT_EQ(a.integer(Flag::kNPredict), -1);
  EXPECT_EQ(a.text(Flag::kPrompt), "--no flag");
}

TEST(Parse, EndsFlagsAtTwoDashes) {
  EXPECT_THAT(parse(kRun, {"m", "--", "--temp", "-x"}).words(), ElementsAre("m", "--temp", "-x"));
}

TEST(Parse, SwitchesHaveANegativeFormAndValues) {
  EXPECT_FALSE(parse(kRun, {"--no-escape"}).on(Flag::kEscape));
  EXPECT_FALSE(parse(kRun, {"--escape=off"}).on(Flag::kEscape));
  EXPECT_TRUE(parse(kRun, {"--escape=1"}).on(Flag::kEscape));
  EXPECT_TRUE(parse(kRun, {}).on(Flag::kEscape));
  EXPECT_FALSE(parse(kRun, {"--no-perf"}).on(Flag::kPerf));
  EXPECT_FALSE(parse(kRun, {"--fit", "off"}).on(Flag::kFit));
  EXPECT_FALSE(parse(kRun, {"--no-fit"}).on(Flag::kFit));
  EXPECT_THAT(refusal(kRun, {"--no-temp"}), StartsWith("--no-temp: there is no such flag"));
}

TEST(Parse, ReadsUnderscoresAsDashesInLongNames) {
  EXPECT_EQ(parse(kRun, {"--ctx_size", "512"}).integer(Flag::kCtxSize), 512);
}

TEST(Parse, OneNameMayMeanAnotherThingInAnotherCommand) {
  EXPECT_EQ(parse(kRun, {"-p", "512"}).text(Flag::kPrompt), "512");
  EXPECT_THAT(parse(kBench, {"-p", "512,16"}).numbers(Flag::kBenchPrompt), ElementsAre(512, 16));
  EXPECT_EQ(parse(kLogits, {"-o", "x.safetensors"}).text(Flag::kOutput), "x.safetensors");
  EXPECT_EQ(parse(kBench, {"-o", "json"}).text(Flag::kBenchOutput), "json");
}

TEST(Parse, OptionalChoiceTakesOnlyItsOwnWords) {
  const Arguments with = parse(kBench, {"--progress", "off", "m"});
  EXPECT_EQ(with.text(Flag::kBenchProgress), "off");
  const Arguments without = parse(kBench, {"--progress", "m"});
  EXPECT_EQ(without.text(Flag::kBenchProgress), "plain");
  EXPECT_THAT(without.words(), ElementsAre("m"));
  EXPECT_EQ(parse(kTokenize, {"--no-parse-special"}).text(Flag::kParseSpecial), "none");
}

TEST(Parse, RefusesUnknownFlagsWithANearName) {
  EXPECT_EQ(refusal(kRun, {"--tmep", "1"}), "--tmep: there is no such flag; did you mean --temp?");
  EXPECT_EQ(refusal(kRun, {"--zzzzzzzz"}),
            "--zzzzzzzz: there is no such flag; tern help run lists them");
  EXPECT_THAT(refusal(kRun, {"--ctx-siz", "1"}), HasSubstr("--ctx-size"));
}

TEST(Parse, RefusesKnownFlagsThatThisBuildLacks) {
  for (const char* flag :
       {"--config", "-ngl", "--n-gpu-layers", "--mlock", "--no-kv-offload", "--grammar", "-j",
        "--mirostat", "--lora", "-md", "--draft", "--override-kv", "--image", "--samplers", "-C",
        "--keep", "--context-shift"}) {
    EXPECT_EQ(refusal(kRun, {flag, "1"}),
              std::string(flag) + ": this build does not have this flag");
  }
  EXPECT_EQ(refusal(kExplain, {"--fail-on", "x"}), "--fail-on: this build does not have this flag");
}

TEST(Parse, RefusesFlagsOfOtherCommands) {
  EXPECT_THAT(refusal(kInfo, {"--temp", "1"}), StartsWith("--temp: this command does not take"));
  EXPECT_THAT(refusal(kRun, {"--jsonl", "x"}), StartsWith("--jsonl: this command does not take"));
}

TEST(Parse, RefusesValuesOutsideOfTheirKind) {
  EXPECT_EQ(refusal(kRun, {"--top-k", "abc"}), "--top-k: 'abc' is not a whole number");
  EXPECT_EQ(refusal(kRun, {"--temp", "hot"}), "--temp: 'hot' is not a number");
  EXPECT_EQ(refusal(kRun, {"--temp", "nan"}), "--temp: 'nan' is not a number");
  EXPECT_EQ(refusal(kRun, {"--top-p", "1.5"}), "--top-p: '1.5' is outside of 0 .. 1");
  EXPECT_EQ(refusal(kRun, {"-n", "-2"}), "-n: '-2' is below -1");
  EXPECT_EQ(refusal(kRun, {"-n", "99999999999999999999"}),
            "-n: '99999999999999999999' is outside of -1 .. 9223372036854775807");
  EXPECT_EQ(refusal(kRun, {"-c", "9999999999G"}).find("-c: '9999999999G' is outside of "), 0U);
  EXPECT_EQ(refusal(kRun, {"-n", "-99999999999999999999"}),
            "-n: '-99999999999999999999' is below -1");
  EXPECT_EQ(refusal(kRun, {"--exact=maybe"}), "--exact: 'maybe' is neither on nor off");
  EXPECT_THAT(refusal(kRun, {"-ctk", "q8_0"}), AllOf(HasSubstr("q8_0"), HasSubstr("f16, f32")));
  EXPECT_THAT(refusal(kRun, {"--load-mode", "mlock"}), HasSubstr("auto, mmap, read"));
  EXPECT_EQ(refusal(kRun, {"-c"}), "-c: a value is missing (N); see tern help run");
  EXPECT_THAT(refusal(kBench, {"-p", "5-3"}), StartsWith("-p: element 1 of the list, '5-3',"));
}

TEST(Parse, RanksCommandLineOverTernOverLlama) {
  const Variables both = {{"TERN_ARG_CTX_SIZE", "2048"}, {"LLAMA_ARG_CTX_SIZE", "1024"}};
  EXPECT_EQ(parse(kRun, {"-c", "512"}, both).integer(Flag::kCtxSize), 512);
  const Arguments tern_twin = parse(kRun, {}, both);
  EXPECT_EQ(tern_twin.integer(Flag::kCtxSize), 2048);
  EXPECT_EQ(tern_twin.source(Flag::kCtxSize), Source::kTernEnvironment);
  EXPECT_EQ(tern_twin.spelling(Flag::kCtxSize), "TERN_ARG_CTX_SIZE");
  EXPECT_EQ(parse(kRun, {}, {{"LLAMA_ARG_CTX_SIZE", "1k"}}).integer(Flag::kCtxSize), 1024);
}

TEST(Parse, EnvironmentTwinsAreCheckedLikeFlags) {
  EXPECT_EQ(refusal(kRun, {}, {{"TERN_ARG_TOP_K", "x"}}),
            "TERN_ARG_TOP_K: 'x' is not a whole number");
  EXPECT_THAT(
      refusal(kRun, {}, {{"TERN_ARG_TOPK", "1"}}),
      StartsWith("TERN_ARG_TOPK: no flag answers to this variable; did you mean TERN_ARG_TOP_K"));
  EXPECT_EQ(refusal(kRun, {}, {{"TERN_ARG_MLOCK", "1"}}),
            "TERN_ARG_MLOCK: this build does not have --mlock");
  // A twin of another command's flag does no harm.
  EXPECT_EQ(refusal(kInfo, {}, {{"TERN_ARG_TEMP", "1"}}), "accepted");
}

TEST(Parse, WarnsAboutLlamaTwinsItCannotHonour) {
  std::vector<std::string> warnings;
  (void)Arguments::parse(kRun, {}, Environment(Variables{{"LLAMA_ARG_N_GPU_LAYERS", "99"}}),
                         warnings);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0],
              AllOf(StartsWith("LLAMA_ARG_N_GPU_LAYERS: "), HasSubstr("--n-gpu-layers")));
}

TEST(Parse, SaysWhereEverySettingCameFrom) {
  const Arguments a = parse(kRun, {"-c", "512"}, {{"TERN_ARG_TEMP", "0"}});
  EXPECT_THAT(a.settings(),
              testing::IsSupersetOf(
                  {"ctx-size = 512 (-c)", "temp = 0 (TERN_ARG_TEMP)", "top-k = 40 (built in)"}));
}

TEST(Flags, EverySpellingIsUniqueWithinACommand) {
  for (unsigned bit = 1; bit < kAllCommands; bit <<= 1U) {
    std::set<std::string> seen;
    for (const FlagRow& row : flag_table()) {
      if ((row.commands & bit) == 0) continue;
      std::vector<std::string> spellings = {"--" + std::string(row.name)};
      for_each_word(row.aliases, ' ', [&](auto n) { spellings.push_back("--" + std::string(n)); });
      for_each_word(row.short_names, ' ', [&](auto n) { spellings.emplace_back(n); });
      for (const std::string& spelling : spellings) {
        const FlagRow* found = find_flag(spelling, bit, false);
        ASSERT_NE(found, nullptr) << spelling;
        if (row.available) {
          EXPECT_TRUE(seen.insert(spelling).second) << spelling << " twice";
          EXPECT_EQ(found->id, row.id) << spelling;
        }
      }
    }
  }
}

TEST(Flags, EveryAvailableRowIsWholeAndFindsItself) {
  for (const FlagRow& row : flag_table()) {
    if (!row.available) continue;
    EXPECT_EQ(flag_row(row.id).name, row.name);
    EXPECT_FALSE(row.help.empty()) << row.name;
    if (row.kind == ValueKind::kChoice || row.kind == ValueKind::kOptionalChoice) {
      EXPECT_NE(row.value_name.find('|'), std::string_view::npos) << row.name;
    }
  }
}

TEST(Help, NamesEveryAvailableFlagOfACommandAndFitsScreens) {
  for (const CommandRow& command : command_table()) {
    if (command.function == nullptr) continue;
    const std::string help = help_text(&command);
    std::size_t lines_of_group = 0;
    for_each_word(help, '\n', [&](std::string_view line) {
      EXPECT_LE(line.size(), 100U) << line;
      lines_of_group = line.substr(0, 2) == "  " ? lines_of_group + 1 : 0;
      EXPECT_LE(lines_of_group, 40U) << command.name;
    });
    for (const FlagRow& row : flag_table()) {
      const bool belongs = row.available && (row.commands & command.bit) != 0;
      if (!belongs) continue;
      EXPECT_THAT(help, HasSubstr(row.name)) << command.name;
    }
  }
}

TEST(Values, NumbersOfTokensHaveBinarySuffixes) {
  EXPECT_EQ(parse_tokens("4k"), 4096);
  EXPECT_EQ(parse_tokens("2M"), 2 * 1024 * 1024);
  EXPECT_EQ(parse_tokens("1G"), 1024LL * 1024 * 1024);
  EXPECT_EQ(parse_tokens("-1"), -1);
  EXPECT_EQ(parse_tokens("k"), std::nullopt);
  EXPECT_EQ(parse_tokens("9999999999999G"), std::nullopt);
  EXPECT_EQ(parse_tokens("12x"), std::nullopt);
  EXPECT_EQ(parse_tokens(""), std::nullopt);
}

TEST(Values, ListsAndRangesExpand) {
  EXPECT_THAT(*parse_numbers("1,2,8"), ElementsAre(1, 2, 8));
  EXPECT_THAT(*parse_numbers("1-4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*parse_numbers("128-512+128"), ElementsAre(128, 256, 384, 512));
  EXPECT_THAT(*parse_numbers("1-10*2"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(*parse_numbers("0,1k-2k+512"), ElementsAre(0, 1024, 1536, 2048));
  for (const char* bad :
       {"", ",", "1,", "a", "1-", "-1-", "3-1", "1-4+0", "1-4*1", "0-8*2", "1-99999999"}) {
    EXPECT_EQ(parse_numbers(bad), std::nullopt) << bad;
  }
}

TEST(Values, IdsAreSeparatedByCommasOrSpace) {
  EXPECT_THAT(*parse_ids("504,3575"), ElementsAre(504, 3575));
  EXPECT_THAT(*parse_ids(" [1, 2 ,3]\n"), ElementsAre(1, 2, 3));
  EXPECT_THAT(*parse_ids("1 2\n3\t4"), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(parse_ids("")->empty());
  EXPECT_EQ(parse_ids("1,,2"), std::nullopt);
  EXPECT_EQ(parse_ids("1;2"), std::nullopt);
  EXPECT_EQ(parse_ids("99999999999"), std::nullopt);
}

TEST(Values, EscapesBecomeBytes) {
  EXPECT_EQ(unescape("a\\nb\\t\\x41\\\\n\\q\\"), "a\nb\tA\\n\\q\\");
  EXPECT_EQ(unescape("\\x4"), "\\x4");
  EXPECT_EQ(unescape("\\xff"), "\xff");
}

TEST(Values, NearestNameIsNearOrNothing) {
  EXPECT_EQ(nearest_name("tempalte", {"tokenize", "template"}), "template");
  EXPECT_EQ(nearest_name("perp", {"run", "perplexity"}), "perplexity");
  EXPECT_EQ(nearest_name("xyzzy", {"run", "bench"}), "");
}

}  // namespace
}  // namespace tern::cli
