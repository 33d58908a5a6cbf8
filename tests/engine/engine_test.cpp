// What a caller of the library sees: answers, cancels, limits, two models side by side.
#include "tern/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "base/allocation_counter_test.h"
#include "tests/engine/tiny_engine.h"

namespace tern {
namespace {

using fixtures::make_tiny_model;
using fixtures::TinyArchitecture;
using fixtures::TinyModel;
using quant::Format;
using testing_tiny::TemporaryFolder;
using testing_tiny::two_threads;

std::vector<std::int32_t> some_ids(int count) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + 11) % 256);
  return ids;
}

Model open_tiny(const Engine& engine, const std::string& path, ModelOptions options = {}) {
  return engine.open(path, options, {}, {}).value();
}

GenerateRequest greedy(std::vector<std::int32_t> prompt, std::int64_t tokens) {
  GenerateRequest r;
  r.prompt = std::move(prompt);
  r.max_tokens = tokens;
  r.ignore_end_tokens = true;
  r.sampling.temperature = 0;
  return r;
}

TEST(Engine, AnswersTheSameWhateverThePromptIsCutInto) {
  const Engine engine = two_threads();
  const std::vector<std::int32_t> ids = some_ids(100);
  for (const Format format : {Format::kQ1G128, Format::kT2G64, Format::kT1G128}) {
    const TemporaryFolder folder;
    const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3, format));
    std::vector<float> whole;
    for (const bool exact : {true, false})
      for (const int rows : {512, 64, 7, 1}) {
        const Model model = open_tiny(engine, path, {.batch_rows = rows, .exact = exact});
        Session session = model.session({}).value();
        const std::vector<float> logits = session.evaluate(ids, 1, {}, {}).value();
        if (whole.empty()) whole = logits;
        // Bit for bit: packed weights, exact sums, with and without `exact`.
        EXPECT_EQ(logits, whole) << rows << " rows a step";
      }
  }
}

TEST(Engine, GivesTheSameBitsForEveryNumberOfThreads) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kLlama, Format::kT2G64));
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    const Engine engine = Engine::create({.threads = threads}).value();
    const Model model = open_tiny(engine, path);
    Session session = model.session({}).value();
    const std::vector<float> logits = session.evaluate(some_ids(40), 40, {}, {}).value();
    if (first.empty()) first = logits;
    EXPECT_EQ(logits, first) << threads << " threads";
  }
}

TEST(Engine, ContinuesAConversationAsIfItHadBeenOnePrompt) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ8_0));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path);
  Session talk = model.session({}).value();
  const Answer first = talk.generate(greedy(some_ids(10), 5), {}, {}, {}).value();
  const Answer second = talk.generate(greedy({1, 2, 3}, 5), {}, {}, {}).value();
  std::vector<std::int32_t> all = some_ids(10);
  all.insert(all.end(), first.ids.begin(), first.ids.end());
  all.insert(all.end(), {1, 2, 3});
  Session whole = model.session({}).value();
  EXPECT_EQ(whole.generate(greedy(all, 5), {}, {}, {}).value().ids, second.ids);
}

TEST(Engine, DrawsTheSameAnswerForTheSameSeed) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kLlama));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path);
  const auto answer = [&](std::uint64_t seed) {
    GenerateRequest r = greedy(some_ids(8), 24);
    r.sampling.temperature = 1;
    r.sampling.top_k = 0;
    r.sampling.seed = seed;
    return model.session({}).value().generate(r, {}, {}, {}).value().ids;
  };
  EXPECT_EQ(answer(7), answer(7));
  EXPECT_NE(answer(7), answer(8));
}

TEST(Engine, RefusesAPromptThatDoesNotFitWithBothNumbers) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path, {.context = 32});
  Session session = model.session({}).value();
  const auto refused = session.generate(greedy(some_ids(33), 1), {}, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kContextOverflow);
  EXPECT_NE(refused.error().message().find("33"), std::string::npos);
  EXPECT_NE(refused.error().message().find("32"), std::string::npos);
  EXPECT_EQ(session.position(), 0);
}

TEST(Engine, StopsWhenTheContextIsFull) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path, {.context = 32});
  Session session = model.session({}).value();
  const Answer answer = session.generate(greedy(some_ids(30), -1), {}, {}, {}).value();
  EXPECT_EQ(answer.finish, FinishReason::kContextFull);
  EXPECT_EQ(answer.ids.size(), 3U);  // from 30, 31 and 32 positions
  EXPECT_EQ(session.position(), 32);
}

TEST(Engine, CancelInTheMiddleOfALongPromptLeavesTheSessionAsItWas) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path, {.batch_rows = 8});
  Session session = model.session({}).value();
  const Answer before = session.generate(greedy(some_ids(9), 3), {}, {}, {}).value();
  const std::int64_t position = session.position();
  const CancelToken cancel = CancelToken::make();
  int reports = 0;
  const auto progress = [&](const Progress& p) {
    ++reports;
    if (p.done > 0) cancel.request();
  };
  const Answer cut = session.generate(greedy(some_ids(80), 3), {}, progress, cancel).value();
  EXPECT_EQ(cut.finish, FinishReason::kCancelled);
  EXPECT_TRUE(cut.ids.empty());
  EXPECT_GT(reports, 0);
  EXPECT_EQ(session.position(), position);
  // The next answer is right: the same as in a session that never saw the cancelled prompt.
  const Answer after = session.generate(greedy({5, 6}, 6), {}, {}, {}).value();
  Session other = model.session({}).value();
  (void)other.generate(greedy(some_ids(9), 3), {}, {}, {}).value();
  EXPECT_EQ(other.generate(greedy({5, 6}, 6), {}, {}, {}).value().ids, after.ids);
}

TEST(Engine, StopStringsEndTheAnswerAndAreNeverShown) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kLlama));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path);
  const std::string text =
      model.session({}).value().generate(greedy(some_ids(8), 20), {}, {}, {}).value().text;
  ASSERT_GT(text.size(), 6U);
  // A stop string out of the middle of the answer, where it stands for the first time.
  const std::string stop = text.substr(3, 2);
  const std::size_t where = text.find(stop);
  GenerateRequest r = greedy(some_ids(8), 20);
  r.stop = {stop};
  std::string shown;
  const Answer answer = model.session({})
                            .value()
                            .generate(r,
                                      [&shown](std::string_view chunk) {
                                        shown += chunk;
                                        return true;
                                      },
                                      {}, {})
                            .value();
  EXPECT_EQ(answer.finish, FinishReason::kStopString);
  EXPECT_EQ(shown, text.substr(0, where));
  EXPECT_EQ(answer.text, shown);
}

TEST(Engine, RunsTwoModelsInOneProcessOnTwoThreads) {
  const TemporaryFolder folder;
  const std::string a =
      folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128), "a");
  const std::string b = folder.write(make_tiny_model(TinyArchitecture::kLlama, Format::kQ4_1), "b");
  const Engine engine = two_threads();
  const auto alone = [&](const std::string& path) {
    return open_tiny(engine, path)
        .session({})
        .value()
        .generate(greedy(some_ids(20), 40), {}, {}, {})
        .value()
        .ids;
  };
  const auto expected_a = alone(a);
  const auto expected_b = alone(b);
  const Engine second = two_threads();
  std::vector<std::int32_t> got_a, got_b;
  std::thread one([&] {
    got_a = open_tiny(engine, a)
                .session({})
                .value()
                .generate(greedy(some_ids(20), 40), {}, {}, {})
                .value()
                .ids;
  });
  std::thread two([&] {
    got_b = open_tiny(second, b)
                .session({})
                .value()
                .generate(greedy(some_ids(20), 40), {}, {}, {})
                .value()
                .ids;
  });
  one.join();
  two.join();
  EXPECT_EQ(got_a, expected_a);
  EXPECT_EQ(got_b, expected_b);
}

// What one session says to a prompt of its own.
std::vector<std::int32_t> say(const Model& model, int prompt, std::int64_t tokens) {
  Session session = model.session({}).value();
  return session.generate(greedy(some_ids(prompt), tokens), {}, {}, {}).value().ids;
}

TEST(Threads, TwoModelsOnOneEngineAnswerSideBySide) {
  const TemporaryFolder folder;
  const Engine engine = two_threads();
  const Model a = open_tiny(
      engine, folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128), "a"));
  const Model b = open_tiny(
      engine, folder.write(make_tiny_model(TinyArchitecture::kLlama, Format::kT2G64), "b"));
  const auto expected_a = say(a, 20, 30);
  const auto expected_b = say(b, 9, 30);
  std::vector<std::int32_t> got_a;
  std::vector<std::int32_t> got_b;
  std::thread one([&] { got_a = say(a, 20, 30); });
  std::thread two([&] { got_b = say(b, 9, 30); });
  one.join();
  two.join();
  EXPECT_EQ(got_a, expected_a);
  EXPECT_EQ(got_b, expected_b);
}

TEST(Threads, TwoSessionsOfOneModelAnswerSideBySide) {
  const TemporaryFolder folder;
  const Engine engine = two_threads();
  const Model model =
      open_tiny(engine, folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128)),
                {.context = 128});
  const auto expected_a = say(model, 20, 30);
  const auto expected_b = say(model, 9, 30);
  ASSERT_NE(expected_a, expected_b);
  std::vector<std::int32_t> got_a;
  std::vector<std::int32_t> got_b;
  std::thread one([&] { got_a = say(model, 20, 30); });
  std::thread two([&] { got_b = say(model, 9, 30); });
  one.join();
  two.join();
  EXPECT_EQ(got_a, expected_a);
  EXPECT_EQ(got_b, expected_b);
}

TEST(Threads, AModelMayGoAndAnotherComeWhileOneAnswers) {
  const TemporaryFolder folder;
  const std::string short_lived =
      folder.write(make_tiny_model(TinyArchitecture::kLlama, Format::kQ8_0), "short");
  const Engine engine = two_threads();
  const Model model = open_tiny(
      engine, folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128), "long"));
  const auto expected = say(model, 20, 60);
  std::vector<std::int32_t> got;
  std::thread answers([&] { got = say(model, 20, 60); });
  std::thread comes_and_goes([&] {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(say(open_tiny(engine, short_lived), 5, 2).size(), 2U);
  });
  answers.join();
  comes_and_goes.join();
  EXPECT_EQ(got, expected);
}

TEST(Threads, ASessionKeepsItsModelAndEngineAlive) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  Session session = open_tiny(two_threads(), path).session({}).value();
  EXPECT_EQ(session.generate(greedy(some_ids(4), 3), {}, {}, {}).value().ids.size(), 3U);
}

TEST(ChatTemplate, TakesAClockOfTheYears0To9999) {
  const ChatTemplate clock = ChatTemplate::parse("{{ strftime_now('%Y-%m-%d %H:%M:%S') }}").value();
  const auto at = [&](std::int64_t now) {
    return clock.render(R"([{"role": "user", "content": "x"}])", {.now = now});
  };
  EXPECT_EQ(at(0).value().text(), "1970-01-01 00:00:00");
  EXPECT_EQ(at(253'402'300'799).value().text(), "9999-12-31 23:59:59");
  EXPECT_EQ(at(-62'167'219'200).value().text(), "0-01-01 00:00:00");
  for (const std::int64_t now :
       {std::int64_t{253'402'300'800}, std::int64_t{-62'167'219'201},
        std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    const auto refused = at(now);
    ASSERT_FALSE(refused.ok()) << now;
    EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(refused.error().message().find(std::to_string(now)), std::string::npos);
  }
}

TEST(Engine, SaysThatARequestForbidsEveryToken) {
  const TemporaryFolder folder;
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, folder.write(make_tiny_model(TinyArchitecture::kQwen3)));
  Session session = model.session({}).value();
  GenerateRequest r = greedy(some_ids(4), 8);
  r.ignore_end_tokens = false;
  r.min_tokens = 2;
  const std::vector<std::int32_t>& ends = model.tokenizer().end_tokens();
  for (std::int32_t id = 0; id < fixtures::kTinyTokens; ++id)
    if (std::find(ends.begin(), ends.end(), id) == ends.end())
      r.sampling.logit_bias.emplace_back(id, -std::numeric_limits<float>::infinity());
  const auto refused = session.generate(r, {}, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().message(), "logit_bias and min_tokens forbid every token");
  EXPECT_EQ(session.position(), 0);
  r.min_tokens = 0;  // an end token is left
  EXPECT_EQ(session.generate(r, {}, {}, {}).value().finish, FinishReason::kEnd);
}

TEST(Engine, ChecksEveryBlockBeforeLoadingWhenAsked) {
  const Engine engine = two_threads();
  const auto refusal = [&](const TinyModel& m, const ModelOptions& options) {
    const TemporaryFolder folder;
    const std::string path = folder.write(m);
    const auto opened = engine.open(path, options, {}, {});
    if (opened.ok()) return std::string();
    EXPECT_EQ(opened.error().code(), ErrorCode::kInvalidFile);
    EXPECT_EQ(opened.error().message().find(path + ": "), 0U);
    return opened.error().message().substr(path.size() + 2);
  };
  const ModelOptions checked{.check_tensors = true};
  EXPECT_EQ(refusal(make_tiny_model(TinyArchitecture::kQwen3), checked), "");
  TinyModel dense = make_tiny_model(TinyArchitecture::kQwen3);
  const float bad = -std::numeric_limits<float>::infinity();
  std::memcpy(&dense.tensor("blk.0.ffn_down.weight").bytes[1031 * 4], &bad, 4);
  EXPECT_EQ(refusal(dense, {}), "");
  EXPECT_EQ(refusal(dense, checked), "tensor 'blk.0.ffn_down.weight' weight 1031 is inf");
  TinyModel packed = make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128);
  auto& bytes = packed.tensor("blk.0.ffn_down.weight").bytes;
  bytes[7 * 18] = std::byte{0x00};
  bytes[7 * 18 + 1] = std::byte{0x7e};
  EXPECT_EQ(refusal(packed, checked), "tensor 'blk.0.ffn_down.weight' block 7 has scale nan");
}

TEST(Engine, ChecksTensorsWithProgressAndStopsWhenAsked) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  const Engine engine = two_threads();
  const CancelToken cancel = CancelToken::make();
  std::vector<std::string> seen;
  const auto progress = [&](const Progress& p) {
    seen.emplace_back(p.what);
    cancel.request();
  };
  const auto opened = engine.open(path, {.check_tensors = true}, progress, cancel);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(seen, std::vector<std::string>{"checking weights"});
}

// A file that is not mapped lies in memory of its own, which is given back piece by piece.
TEST(Engine, AnswersTheSameFromAFileThatIsReadAsFromOneThatIsMapped) {
  const TemporaryFolder folder;
  const Engine engine = two_threads();
  for (const Format format : {Format::kF32, Format::kT2G64}) {
    TinyModel m = make_tiny_model(TinyArchitecture::kQwen3, format);
    m.set_string("general.description", std::string(2U << 20, 'x'));  // beyond a heap buffer
    const std::string path = folder.write(m);
    std::vector<float> mapped;
    for (const LoadMode mode : {LoadMode::kMmap, LoadMode::kRead}) {
      const Model model = open_tiny(engine, path, {.load_mode = mode});
      const auto logits = model.session({}).value().evaluate(some_ids(12), 1, {}, {}).value();
      if (mapped.empty()) mapped = logits;
      EXPECT_EQ(logits, mapped);
    }
  }
}

TEST(Engine, SessionsOfOneModelShareItsCacheAndGiveItBack) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path, {.context = 64});
  for (int i = 0; i < 20; ++i) {
    Session session = model.session({}).value();
    ASSERT_TRUE(session.evaluate(some_ids(60), 1, {}, {}).ok()) << "round " << i;
  }
  Session first = model.session({}).value();
  ASSERT_TRUE(first.evaluate(some_ids(60), 1, {}, {}).ok());
  Session second = model.session({}).value();
  const auto refused = second.evaluate(some_ids(60), 1, {}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  first.truncate(0);
  EXPECT_TRUE(second.evaluate(some_ids(60), 1, {}, {}).ok());
}

TEST(Engine, NamesTheOpThatMadeLogitsNotFinite) {
  const TemporaryFolder folder;
  TinyModel tm = make_tiny_model(TinyArchitecture::kQwen3);
  const float huge = 3e38F;
  auto& bytes = tm.tensor("blk.0.ffn_norm.weight").bytes;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) std::memcpy(&bytes[i], &huge, 4);
  const std::string path = folder.write(tm);
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path);
  Session session = model.session({}).value();
  const auto answer = session.generate(greedy(some_ids(4), 2), {}, {}, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), ErrorCode::kNumeric);
  EXPECT_NE(answer.error().message().find("layer 0"), std::string::npos)
      << answer.error().message();
}

TEST(Engine, RefusesIdsOutsideOfTheVocabulary) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path);
  Session session = model.session({}).value();
  for (const std::int32_t id : {-1, fixtures::kTinyTokens, 1 << 30}) {
    const auto refused = session.evaluate(std::vector<std::int32_t>{1, id}, 1, {}, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message().find(std::to_string(id)), std::string::npos);
  }
  EXPECT_EQ(session.position(), 0);
}

TEST(Engine, AllocatesNothingPerTokenBesideTheLogitsThatItReturns) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128));
  const Engine engine = two_threads();
  const Model model = open_tiny(engine, path);
  Session session = model.session({}).value();
  const std::vector<std::int32_t> one = {3};
  for (int i = 0; i < 4; ++i) (void)session.evaluate(one, 1, {}, {}).value();
  const long before = allocations_so_far();
  constexpr int kTokens = 20;
  for (int i = 0; i < kTokens; ++i) (void)session.evaluate(one, 1, {}, {}).value();
  // One vector of logits a call, which the caller owns.
  EXPECT_LE(allocations_so_far() - before, kTokens);
}

TEST(Engine, SaysWhatDoesNotExist) {
  const auto device = Engine::create({.device = "abacus"});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), ErrorCode::kDevice);
  EXPECT_NE(device.error().message().find("cpu"), std::string::npos);
  EXPECT_EQ(device.error().message().find("--device abacus: "), 0U) << device.error().message();
  EXPECT_EQ(Engine::create({.instruction_set = "mmx"}).error().message(),
            "instruction set 'mmx': there is no such set; known are avx512, avx2, portable");
  EXPECT_EQ(Engine::create({.threads = -2}).error().message(), "--threads -2: expected 1 to 1024");
  // A set that is forced is used whole or refused: no quiet step down.
  const auto forced = Engine::create({.threads = 1, .instruction_set = "avx512"});
  if (forced.ok()) {
    for (const char* part : {"AVX2", "AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL", "AVX512-VNNI"})
      EXPECT_NE(forced->device_text().find(part), std::string::npos) << forced->device_text();
  } else {
    EXPECT_EQ(forced.error().code(), ErrorCode::kUnsupported);
    EXPECT_NE(forced.error().message().find("the processor lacks AVX"), std::string::npos);
  }
  const auto missing = two_threads().open("/nonexistent/model.gguf", {}, {}, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
}

TEST(Engine, PortableKernelsAgreeWithTheFastOnes) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kT1G128));
  const auto logits = [&](const std::string& isa, Activations activations) {
    const Engine engine = Engine::create({.threads = 1, .instruction_set = isa}).value();
    const Model model = engine
                            .open(path,
                                  {.activations = activations,
                                   .cache_type_k = CacheType::kF32,
                                   .cache_type_v = CacheType::kF32},
                                  {}, {})
                            .value();
    return model.session({}).value().evaluate(some_ids(12), 1, {}, {}).value();
  };
  const std::vector<float> fast = logits("", Activations::kF32);
  const std::vector<float> slow = logits("portable", Activations::kF32);
  float largest = 0;
  float difference = 0;
  for (std::size_t i = 0; i < fast.size(); ++i) {
    largest = std::max(largest, std::abs(slow[i]));
    difference = std::max(difference, std::abs(fast[i] - slow[i]));
  }
  EXPECT_LT(difference, 1e-5F * largest);
  const std::vector<std::string> warnings =
      Engine::create({.instruction_set = "portable"}).value().warnings();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("AVX2"), std::string::npos) << warnings[0];
  EXPECT_EQ(warnings[0].find("--isa"), std::string::npos) << warnings[0];
}

}  // namespace
}  // namespace tern
