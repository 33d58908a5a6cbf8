// Properties over a tiny model: whatever is removed, retyped or set to an extreme, it loads and
// gives finite logits, or it is refused in one sentence. A fixed tenth of the sweep runs here, all
// of it with
// --gtest_also_run_disabled_tests (tools/soak.sh).
#include <cmath>
#include <limits>

#include "tests/engine/tiny_engine.h"

namespace tern {
namespace {

using fixtures::make_tiny_model;
using fixtures::TinyArchitecture;
using fixtures::TinyModel;
using testing_tiny::TemporaryFolder;

class Sweep : public ::testing::TestWithParam<TinyArchitecture> {
 protected:
  // Every tenth case, unless the whole sweep was asked for.
  bool is_due() { return is_full_ || counter_++ % 10 == 3; }

  void expect_sound(const TinyModel& m, const std::string& what) {
    const std::string path = folder_.write(m);
    const auto opened = engine_.open(path, {.context = 64}, {}, {});
    ++cases_;
    if (!opened.ok()) {
      const std::string message = opened.error().message();
      EXPECT_EQ(message.find(path), 0U) << what << ": " << message;
      EXPECT_GT(message.size(), path.size() + 10) << what;
      EXPECT_NE(opened.error().code(), ErrorCode::kInternal) << what << ": " << message;
      return;
    }
    Session session = opened->session({}).value();
    const auto logits = session.evaluate(std::vector<std::int32_t>{1, 2, 3}, 1, {}, {});
    if (!logits.ok()) {
      EXPECT_EQ(logits.error().code(), ErrorCode::kNumeric)
          << what << ": " << logits.error().message();
      return;
    }
    for (const float x : *logits) ASSERT_TRUE(std::isfinite(x)) << what;
  }

  TemporaryFolder folder_;
  Engine engine_ = Engine::create({.threads = 1}).value();
  bool is_full_ = GTEST_FLAG_GET(also_run_disabled_tests);
  int counter_ = 0;
  int cases_ = 0;
};

TEST_P(Sweep, KeysRemovedRetypedAndExtreme) {
  const TinyModel base = make_tiny_model(GetParam());
  for (const fixtures::TinyKey& key : base.keys) {
    if (is_due()) {
      TinyModel m = base;
      m.remove_key(key.name);
      expect_sound(m, key.name + " removed");
    }
    for (std::uint32_t type = 0; type <= 12; ++type) {
      if (type == key.type || !is_due()) continue;
      TinyModel m = base;
      // A payload of 16 zero bytes is a valid value of every type (an empty string, an empty array
      // of u8).
      constexpr std::size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
      const std::vector<std::byte> payload(kSizes[type]);
      m.set_raw(key.name, type, payload);
      expect_sound(m, key.name + " as type " + std::to_string(type));
    }
    constexpr std::uint32_t kU32 = 4;
    constexpr std::uint32_t kF32 = 6;
    if (key.type == kU32) {
      for (const std::uint32_t value : {0U, 1U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
        if (!is_due()) continue;
        TinyModel m = base;
        m.set_u32(key.name, value);
        expect_sound(m, key.name + " = " + std::to_string(value));
      }
    }
    if (key.type == kF32) {
      constexpr float kInf = std::numeric_limits<float>::infinity();
      for (const float value : {std::nanf(""), kInf, -kInf, 0.0F, -1.0F, 1e38F}) {
        if (!is_due()) continue;
        TinyModel m = base;
        m.set_f32(key.name, value);
        expect_sound(m, key.name + " = " + std::to_string(value));
      }
    }
  }
  EXPECT_GT(cases_, 20);
}

TEST_P(Sweep, TensorsRemovedRenamedReshapedAndRetyped) {
  const TinyModel base = make_tiny_model(GetParam());
  for (std::size_t i = 0; i < base.tensors.size(); ++i) {
    const std::string& name = base.tensors[i].name;
    if (is_due()) {
      TinyModel m = base;
      m.remove_tensor(name);
      expect_sound(m, name + " removed");
    }
    if (is_due()) {
      TinyModel m = base;
      m.tensors[i].name += ".x";
      expect_sound(m, name + " renamed");
    }
    for (std::size_t d = 0; d < base.tensors[i].ne.size(); ++d) {
      for (const int by : {-1, 1}) {
        if (!is_due()) continue;
        TinyModel m = base;
        m.tensors[i].ne[d] += static_cast<std::uint64_t>(static_cast<std::int64_t>(by));
        std::uint64_t elements = 1;
        for (std::uint64_t n : m.tensors[i].ne) elements *= n;
        m.tensors[i].bytes.resize(elements * 4);
        expect_sound(m, name + " reshaped");
      }
    }
    for (std::uint32_t type = 0; type < 256; ++type) {
      if (!is_due()) continue;
      TinyModel m = base;
      m.tensors[i].type_id = type;
      expect_sound(m, name + " of type " + std::to_string(type));
    }
  }
  EXPECT_GT(cases_, 100);
}

INSTANTIATE_TEST_SUITE_P(Architectures, Sweep,
                         ::testing::Values(TinyArchitecture::kQwen3, TinyArchitecture::kLlama),
                         [](const auto& tested) {
                           return tested.param == TinyArchitecture::kQwen3 ? "qwen3" : "llama";
                         });

}  // namespace
}  // namespace tern
