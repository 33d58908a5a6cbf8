// What the store did, for people and for tools: one report per pipeline, one notice per compile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/gpu/pipeline_store/compiler.h"

namespace tern::gpu {

// Why a tier was not used.
struct TierVerdict {
  Tier tier = Tier::kEmbedded;
  std::string reason;
};

enum class SelfTestState { kNone, kOff, kRecorded, kPassed };
[[nodiscard]] std::string_view name_of(SelfTestState state);

struct PipelineReport {
  std::string kernel;
  std::string variant;
  std::string constants;
  std::string target;
  Tier tier = Tier::kEmbedded;
  std::string compiler;  // version, where it came from one
  std::uint64_t bytes = 0;
  std::string key;  // hash of the artefact's key
  SelfTestState self_test = SelfTestState::kNone;
  double self_test_error = 0;
  double compile_ms = 0;
  double load_ms = 0;
  double self_test_ms = 0;
  std::vector<TierVerdict> not_used;  // better tiers, in order
  std::string diagnostics;            // warnings of the compiler
};

// A compile that the user should know of: one start and one end per resolve, and progress between
// them.
struct CompileNotice {
  enum class Phase { kStarted, kProgress, kFinished };
  Phase phase = Phase::kStarted;
  std::size_t done = 0;
  std::size_t total = 0;
  std::string device;
  double elapsed_ms = 0;
  std::string text;  // one line: "compiling 3 of 12 GPU kernels for NVIDIA H200 (once)"
};
using CompileNoticeFn = std::function<void(const CompileNotice&)>;

}  // namespace tern::gpu
