// Text for people, progress, written files, JSON from strangers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/json_text.h"
#include "cli/progress_bar.h"
#include "cli/safetensors_writer.h"
#include "cli/table.h"
#include "cli/utf8_text.h"
#include "tern/error.h"

namespace tern::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(Utf8Text, FindsTheFirstInvalidByte) {
  EXPECT_EQ(find_invalid_utf8("gr\xC3\xBC\xC3\x9F"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("\xF0\x9F\x98\x80"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("a\xC0\x80"), 1U);         // overlong
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80"), 0U);      // surrogate
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0U);  // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8("ab\xE2\x82"), 2U);        // cut
  EXPECT_EQ(valid_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
}

TEST(Utf8Text, ShowsControlCharacters) {
  EXPECT_EQ(visible("a\x1b[31mb\tc\n", false), "a\\x1b[31mb\tc\n");
  EXPECT_EQ(visible("a\tb\n", true), "a\\tb\\n");
  EXPECT_EQ(visible("\xC2\x9B!", false),
            "\\u009b!");  // C1: another way to begin an escape sequence
  EXPECT_EQ(visible("\x7F\xFF", false), "\\x7f\\xff");
  EXPECT_EQ(visible("\xC3\xA9", true), "\xC3\xA9");
}

TEST(Utf8Text, CutsBetweenCharacters) {
  EXPECT_EQ(cut_to("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to("abcdefg", 6), "abc...");
  EXPECT_EQ(cut_to("\xC3\xA4\xC3\xB6\xC3\xBC\xC3\x9F\xC3\xA9", 4), "\xC3\xA4...");
}

TEST(Utf8Text, FormatsNumbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(binary_size(1152704128), "1.07 GiB");
  EXPECT_EQ(parameter_count(8190000000ULL), "8.19 B");
  EXPECT_EQ(parameter_count(134515008), "134.52 M");
}

TEST(Table, AlignsByCharacters) {
  Table table({"name", ">n"});
  table.add({"\xC3\xA4", "10"});
  table.add({"long", "1"});
  EXPECT_EQ(table.text("  "), "  name   n\n  \xC3\xA4     10\n  long   1\n");
}

// A bar with a clock that the test moves.
struct BarTest : testing::Test {
  ProgressBar::Clock::time_point now{};
  std::string written;
  std::unique_ptr<ProgressBar> bar(ProgressMode mode, std::size_t columns = 80) {
    return std::make_unique<ProgressBar>(
        mode, columns, [this] { return now; }, [this](std::string_view text) { written += text; });
  }
};

TEST_F(BarTest, ShortWorkLeavesNoTrace) {
  const auto b = bar(ProgressMode::kBar);
  b->report({"loading", "bytes", 0, 100, false});
  now += 100ms;
  b->report({"loading", "bytes", 100, 100, true});
  EXPECT_EQ(written, "");
}

TEST_F(BarTest, DrawsWithinHalfASecondAndAtMostTenTimesASecond) {
  const auto b = bar(ProgressMode::kBar);
  b->report({"repacking", "bytes", 0, 2'300'000'000, false});
  now += 400ms;
  b->report({"repacking", "bytes", 1'196'000'000, 2'300'000'000, false});
  EXPECT_EQ(written,
            "\r\x1b[Krepacking  [==========>         ]  52 %  1.2 / 2.3 GB  2990 MB/s  0.4 s");
  written.clear();
  now += 50ms;
  b->report({"repacking", "bytes", 1'300'000'000, 2'300'000'000, false});
  EXPECT_EQ(written, "");
  now += 550ms;
  b->report({"repacking", "bytes", 2'300'000'000, 2'300'000'000, true});
  EXPECT_EQ(written, "\r\x1b[Krepacking 2.3 GB  2300 MB/s  1.0 s\n");
}

TEST_F(BarTest, IsNeverWiderThanTheTerminal) {
  const auto b = bar(ProgressMode::kBar, 30);
  b->report({"repacking", "bytes", 0, 2'300'000'000, false});
  now += 1s;
  b->report({"repacking", "bytes", 1'000'000'000, 2'300'000'000, false});
  EXPECT_EQ(written.size(), 4U + 29U);
}

TEST_F(BarTest, PromptIsShownAfterASecond) {
  const auto b = bar(ProgressMode::kBar);
  b->report({"prompt", "tokens", 0, 14000, false});
  now += 900ms;
  b->report({"prompt", "tokens", 1500, 14000, false});
  EXPECT_EQ(written, "");
  now += 600ms;
  b->report({"prompt", "tokens", 3072, 14000, false});
  EXPECT_EQ(written, "\r\x1b[Kprompt 3,072 / 14,000 tokens  2,048 t/s  5.3 s");
}

TEST_F(BarTest, LinesComeAtQuarters) {
  const auto b = bar(ProgressMode::kLines);
  for (std::uint64_t done = 0; done <= 100; ++done) {
    b->report({"converting", "bytes", done * 1'000'000, 100'000'000, false});
    now += 100ms;
  }
  b->report({"converting", "bytes", 100'000'000, 100'000'000, true});
  std::vector<std::string> shares;
  std::istringstream lines(written);
  for (std::string line; std::getline(lines, line);) shares.push_back(line.substr(0, 17));
  EXPECT_THAT(shares, ElementsAre("converting  3 %  ", "converting  25 % ", "converting  50 % ",
                                  "converting  75 % ", "converting  100 %"));
  EXPECT_EQ(written.find('\r'), std::string::npos);
  EXPECT_EQ(written.find('\x1b'), std::string::npos);
}

TEST_F(BarTest, OffSaysNothing) {
  const auto b = bar(ProgressMode::kOff);
  b->report({"loading", "bytes", 0, 100, false});
  now += 5s;
  b->report({"loading", "bytes", 100, 100, true});
  EXPECT_EQ(written, "");
  EXPECT_FALSE(b->callback());
}

TEST(ProgressMode, FollowsTheStreamAndTheFlag) {
  Terminal terminal;
  EXPECT_EQ(progress_mode("auto", false, terminal), ProgressMode::kLines);
  terminal.err_is_terminal = true;
  EXPECT_EQ(progress_mode("auto", false, terminal), ProgressMode::kBar);
  EXPECT_EQ(progress_mode("plain", false, terminal), ProgressMode::kLines);
  EXPECT_EQ(progress_mode("auto", true, terminal), ProgressMode::kOff);
  terminal.is_dumb = true;
  EXPECT_EQ(progress_mode("auto", false, terminal), ProgressMode::kLines);
}

// A folder that goes away.
struct FileTest : testing::Test {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("tern_cli_" + std::to_string(getpid()));
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
  static std::string bytes_of(const std::string& name) {
    std::ifstream file(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t count() const {
    std::size_t n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      n += entry.exists() ? 1U : 0U;
    return n;
  }
};

TEST_F(FileTest, AppearsOnlyWhenItIsWhole) {
  {
    WrittenFile file(path("a"), false);
    file.write("half");
  }
  EXPECT_EQ(count(), 0U);
  WrittenFile file(path("a"), false);
  file.write("whole");
  EXPECT_FALSE(std::filesystem::exists(path("a")));
  file.commit();
  EXPECT_EQ(bytes_of(path("a")), "whole");
}

TEST_F(FileTest, ReplacesOnlyWithForce) {
  std::ofstream(path("a")) << "old";
  chmod(path("a").c_str(), 0640);
  try {
    WrittenFile file(path("a"), false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.message(), HasSubstr("--force"));
  }
  EXPECT_EQ(bytes_of(path("a")), "old");
  WrittenFile file(path("a"), true);
  file.write("new");
  file.commit();
  EXPECT_EQ(bytes_of(path("a")), "new");
  struct stat status {};
  ASSERT_EQ(stat(path("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(FileTest, AFileThatAppearedMeanwhileStays) {
  WrittenFile file(path("a"), false);
  file.write("mine");
  std::ofstream(path("a")) << "theirs";
  EXPECT_THROW(file.commit(), Error);
  EXPECT_EQ(bytes_of(path("a")), "theirs");
}

TEST_F(FileTest, RemovesWhatAKilledRunLeft) {
  std::ofstream(path("a.999999998.0.part")) << "rest";  // no such process
  std::ofstream(path("a.1.0.part")) << "alive";         // process 1 lives
  std::ofstream(path("b.999999998.0.part")) << "other";
  { WrittenFile file(path("a"), false); }
  EXPECT_FALSE(std::filesystem::exists(path("a.999999998.0.part")));
  EXPECT_TRUE(std::filesystem::exists(path("a.1.0.part")));
  EXPECT_TRUE(std::filesystem::exists(path("b.999999998.0.part")));
}

TEST_F(FileTest, RefusesToWriteItsInput) {
  std::ofstream(path("in")) << "x";
  std::filesystem::create_hard_link(path("in"), path("same"));
  EXPECT_THROW(WrittenFile::refuse_input(path("same"), path("in")), Error);
  EXPECT_NO_THROW(WrittenFile::refuse_input(path("out"), path("in")));
}

TEST_F(FileTest, SafetensorsHasHeaderAndData) {
  const std::vector<std::int32_t> ids = {7, -1};
  const std::vector<float> values = {1.5F, 2.5F, -3.0F};
  const std::vector<TensorToWrite> tensors = {
      {"input_ids", "I32", {2}, std::as_bytes(std::span(ids))},
      {"logits", "F32", {1, 3}, std::as_bytes(std::span(values))}};
  const std::vector<std::pair<std::string, std::string>> metadata = {{"model", "m.gguf"}};
  WrittenFile file(path("t"), false);
  write_safetensors(file, tensors, metadata);
  file.commit();
  const std::string bytes = bytes_of(path("t"));
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ(header % 8, 0U);
  const auto json = nlohmann::json::parse(bytes.substr(8, header));
  EXPECT_EQ(json["__metadata__"]["model"], "m.gguf");
  EXPECT_EQ(json["input_ids"]["data_offsets"], nlohmann::json({0, 8}));
  EXPECT_EQ(json["logits"]["shape"], nlohmann::json({1, 3}));
  EXPECT_EQ(json["logits"]["data_offsets"], nlohmann::json({8, 20}));
  ASSERT_EQ(bytes.size(), 8 + header + 20);
  float last = 0;
  std::memcpy(&last, bytes.data() + bytes.size() - 4, 4);
  EXPECT_EQ(last, -3.0F);
}

TEST(JsonText, CutsMembersWithoutChangingThem) {
  const auto members = json_members(
      "x", R"( {"a" : 1.50, "b":[{"c":"]}"}, 2] ,"s":"q\"}", "n":18446744073709551615,"e":{} } )");
  ASSERT_TRUE(members);
  EXPECT_EQ(member(*members, "a"), "1.50");
  EXPECT_EQ(member(*members, "b"), R"([{"c":"]}"}, 2])");
  EXPECT_EQ(member(*members, "s"), R"("q\"}")");
  EXPECT_EQ(member(*members, "n"), "18446744073709551615");
  EXPECT_EQ(member(*members, "e"), "{}");
  EXPECT_EQ(member(*members, "zz"), std::nullopt);
}

TEST(JsonText, ReadsEscapedKeysAndRefusesOneThatComesTwice) {
  EXPECT_EQ(member(*json_members("x", R"({"\u0061":2})"), "a"), "2");
  EXPECT_TRUE(json_members("x", R"({"a":{"a":1},"b":[{"a":1},{"a":2}],"c":"\"a\":"})"));
  const auto refusal = [](std::string_view text) -> std::string {
    try {
      (void)json_members("x", text);
    } catch (const Error& error) {
      return error.message();
    }
    return "taken";
  };
  EXPECT_EQ(refusal(R"({"a":1,"\u0061":2})"),
            "x: the key \"\\u0061\" comes a second time, at byte 7");
  EXPECT_EQ(refusal(R"({"b":[{"a":1,"a":2}]})"),
            "x: the key \"a\" comes a second time, at byte 13");
}

TEST(JsonText, RefusesWhatIsBrokenOrTooDeep) {
  EXPECT_FALSE(json_members("x", "[1]"));
  try {
    (void)json_members("line", "{\"a\":}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "line: the JSON breaks at byte 6");
  }
  try {
    (void)json_members("line", "{\"a\":" + std::string(100'000, '['));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "line: the JSON is nested deeper than 64");
  }
}

}  // namespace
}  // namespace tern::cli
