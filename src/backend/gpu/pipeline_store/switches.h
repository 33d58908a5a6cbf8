// The four switches of the store, parsed once from plain strings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/cache/cache.h"
#include "backend/gpu/pipeline_store/compiler.h"
#include "base/error.h"

namespace tern::gpu {

enum class SelfTestMode { kOnce, kAlways, kOff };

struct Switches {
  std::vector<Tier> tiers = {Tier::kEmbedded, Tier::kDisk, Tier::kOffline, Tier::kRuntime,
                             Tier::kDriver};  // in this order
  cache::Mode cache = cache::Mode::kOn;
  SelfTestMode self_test = SelfTestMode::kOnce;
  bool verify = false;
};

struct SwitchStrings {
  std::optional<std::string> tiers;      // TERN_KERNEL_TIERS
  std::optional<std::string> cache;      // TERN_KERNEL_CACHE
  std::optional<std::string> self_test;  // TERN_KERNEL_SELFTEST
  std::optional<std::string> verify;     // TERN_KERNEL_VERIFY
};
[[nodiscard]] SwitchStrings read_switch_strings();

// Errors: kUsage, naming the variable, the word and the words that are known.
[[nodiscard]] Result<Switches> parse_switches(const SwitchStrings& strings);

}  // namespace tern::gpu
