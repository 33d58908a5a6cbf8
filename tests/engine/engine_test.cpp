// What a caller of the library sees: answers, cancels, limits, two models side by side.
#include "tern/engine.h"

#include <cmath>
#include <cstring>
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
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3, Format::kQ1G128));
  const Engine engine = two_threads();
  const std::vector<std::int32_t> ids = some_ids(100);
  std::vector<float> whole;
  for (const int rows : {512, 64, 7, 1}) {
    const Model model = open_tiny(engine, path, {.batch_rows = rows});
    Session session = model.session({}).value();
    const std::vector<float> logits = session.evaluate(ids, 1, {}, {}).value();
    if (whole.empty()) whole = logits;
    EXPECT_EQ(logits, whole) << rows << " rows a step";  // bit for bit: packed weights, exact sums
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
  const auto device = Engine::create({.device = "cuda"});
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code(), ErrorCode::kDevice);
  EXPECT_NE(device.error().message().find("cpu"), std::string::npos);
  EXPECT_FALSE(Engine::create({.instruction_set = "mmx"}).ok());
  EXPECT_FALSE(Engine::create({.threads = -2}).ok());
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
  EXPECT_EQ(Engine::create({.instruction_set = "portable"}).value().warnings().size(), 1U);
}

}  // namespace
}  // namespace tern
