// All combinations, in llama-bench's order: setups outside, depths, then tests.
#include "cli/bench_plan.h"

#include <algorithm>

#include "cli/cli_error.h"
#include "cli/flags.h"
#include "cli/model_setup.h"
#include "cli/values.h"

namespace tern::cli {
namespace {

// "f16,f32", repeated; checked.
std::vector<std::string> cache_types(const Arguments& arguments, Flag flag) {
  std::vector<std::string> types;
  std::vector<std::string> texts = arguments.list(flag);
  if (texts.empty()) texts.emplace_back(flag_row(flag).fallback);
  for (const std::string& text : texts) {
    for_each_word(text, ',', [&](std::string_view name) {
      (void)cache_type(arguments.spelling(flag), name);
      types.emplace_back(name);
    });
  }
  return types;
}

std::vector<BenchTest> pairs(const Arguments& arguments) {
  std::vector<BenchTest> tests;
  for (const std::string& text : arguments.list(Flag::kBenchPg)) {
    const std::size_t comma = text.find(',');
    const auto prompt = parse_tokens(std::string_view(text).substr(0, comma));
    const auto generate =
        comma == std::string::npos ? std::nullopt : parse_tokens(text.substr(comma + 1));
    if (!prompt || !generate || *prompt < 0 || *generate < 0 || *prompt > 1'000'000'000 ||
        *generate > 1'000'000'000 || *prompt + *generate == 0) {
      fail(ErrorCode::kUsage, arguments.spelling(Flag::kBenchPg),
           "'{}' is no pair; expected PROMPT,GENERATED such as 512,128", text);
    }
    tests.push_back({*prompt, *generate, 0, 0});
  }
  return tests;
}

std::vector<BenchTest> tests_of(const Arguments& arguments) {
  std::vector<BenchTest> tests;
  for (const std::int64_t depth : arguments.numbers(Flag::kBenchDepth)) {
    for (const std::int64_t repetitions : arguments.numbers(Flag::kBenchRepetitions)) {
      for (const std::int64_t n : arguments.numbers(Flag::kBenchPrompt)) {
        if (n > 0) tests.push_back({n, 0, depth, repetitions});
      }
      for (const std::int64_t n : arguments.numbers(Flag::kBenchGen)) {
        if (n > 0) tests.push_back({0, n, depth, repetitions});
      }
      for (BenchTest pair : pairs(arguments)) {
        pair.depth = depth;
        pair.repetitions = repetitions;
        tests.push_back(pair);
      }
    }
  }
  if (tests.empty()) fail(ErrorCode::kUsage, "-p", "every test has 0 tokens; nothing to measure");
  return tests;
}

template <class T>
bool is_shown(const std::vector<T>& values, const T& usual) {
  return values.size() > 1 || values.front() != usual;
}

}  // namespace

std::string BenchTest::name() const {
  std::string name;
  if (prompt > 0) name = fmt::format("pp{}", prompt);
  if (generate > 0) name += fmt::format("{}tg{}", prompt > 0 ? "+" : "", generate);
  if (depth > 0) name += fmt::format(" @ d{}", depth);
  return name;
}

std::int64_t BenchPlan::context() const {
  std::int64_t most = 0;
  for (const BenchTest& test : tests) most = std::max(most, test.positions());
  return most;
}

BenchPlan bench_plan(const Arguments& arguments) {
  std::vector<std::string> models = arguments.words();
  if (arguments.has(Flag::kModel)) models.push_back(arguments.text(Flag::kModel));
  if (models.empty()) {
    fail(ErrorCode::kUsage, "MODEL", "no model is named, and this build ships none");
  }
  const auto batches = arguments.numbers(Flag::kBenchBatch);
  const auto ubatches = arguments.numbers(Flag::kBenchUbatch);
  const auto types_k = cache_types(arguments, Flag::kBenchCacheTypeK);
  const auto types_v = cache_types(arguments, Flag::kBenchCacheTypeV);
  std::vector<std::int64_t> threads = {0};
  if (arguments.has(Flag::kBenchThreads)) threads = arguments.numbers(Flag::kBenchThreads);

  BenchPlan plan;
  plan.tests = tests_of(arguments);
  plan.shows_batch = is_shown(batches, std::int64_t{2048});
  plan.shows_ubatch = is_shown(ubatches, std::int64_t{512});
  plan.shows_type_k = is_shown(types_k, std::string("f16"));
  plan.shows_type_v = is_shown(types_v, std::string("f16"));
  for (const std::string& model : models) {
    for (const std::int64_t ubatch : ubatches) {
      for (const std::int64_t batch : batches) {
        for (const std::string& type_k : types_k) {
          for (const std::string& type_v : types_v) {
            for (const std::int64_t thread : threads) {
              // A device step is never larger than a request step.
              plan.setups.push_back({model, static_cast<int>(thread), batch,
                                     std::min(ubatch, batch), type_k, type_v});
            }
          }
        }
      }
    }
  }
  return plan;
}

}  // namespace tern::cli
