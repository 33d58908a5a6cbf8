// What `tern bench` will measure: setups (one load each) and tests, from lists of flags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/parse.h"

namespace tern::cli {

// One engine and one loaded model.
struct BenchSetup {
  std::string model;
  int threads = 0;  // 0: the library's choice
  std::int64_t batch = 2048, ubatch = 512;
  std::string type_k = "f16", type_v = "f16";
};

struct BenchTest {
  std::int64_t prompt = 0, generate = 0, depth = 0;
  std::int64_t repetitions = 5;

  // "pp512", "tg128 @ d4096", "pp512+tg128".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::int64_t positions() const { return prompt + generate + depth; }
};

struct BenchPlan {
  std::vector<BenchSetup> setups;
  std::vector<BenchTest> tests;  // of every setup
  bool shows_batch = false, shows_ubatch = false, shows_type_k = false, shows_type_v = false;
  [[nodiscard]] std::int64_t context() const;
};

// Errors: kUsage for pairs and types that do not parse, for no model, and for no test.
[[nodiscard]] BenchPlan bench_plan(const Arguments& arguments);

}  // namespace tern::cli
