#include "backend/gpu/pipeline_store/switches.h"

#include <algorithm>
#include <string_view>

#include "base/env.h"

namespace tern::gpu {
namespace {

constexpr Tier kAllTiers[] = {Tier::kEmbedded, Tier::kDisk, Tier::kOffline, Tier::kRuntime,
                              Tier::kDriver};

Error unknown(std::string_view variable, std::string_view word, std::string_view expected) {
  return fail(ErrorCode::kUsage, "{}: '{}' is not known; expected {}", variable, word, expected);
}

Result<std::vector<Tier>> parse_tiers(std::string_view text) {
  constexpr std::string_view kExpected =
      "names out of embedded, disk, offline, runtime, driver, each at most once, with commas";
  std::vector<Tier> tiers;
  for (;;) {
    const std::size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    const auto* tier = std::find_if(std::begin(kAllTiers), std::end(kAllTiers),
                                    [word](Tier t) { return name_of(t) == word; });
    if (tier == std::end(kAllTiers) ||
        std::find(tiers.begin(), tiers.end(), *tier) != tiers.end()) {
      return unknown("TERN_KERNEL_TIERS", word, kExpected);
    }
    tiers.push_back(*tier);
    if (comma == std::string_view::npos) return tiers;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

SwitchStrings read_switch_strings() {
  return {environment_variable("TERN_KERNEL_TIERS"), environment_variable("TERN_KERNEL_CACHE"),
          environment_variable("TERN_KERNEL_SELFTEST"), environment_variable("TERN_KERNEL_VERIFY")};
}

Result<Switches> parse_switches(const SwitchStrings& strings) {
  Switches switches;
  if (strings.tiers) {
    TERN_ASSIGN(switches.tiers, parse_tiers(*strings.tiers));
  }
  if (strings.cache) {
    if (*strings.cache == "on") {
      switches.cache = cache::Mode::kOn;
    } else if (*strings.cache == "ro") {
      switches.cache = cache::Mode::kReadOnly;
    } else if (*strings.cache == "off") {
      switches.cache = cache::Mode::kOff;
    } else {
      return unknown("TERN_KERNEL_CACHE", *strings.cache, "on, ro or off");
    }
  }
  if (strings.self_test) {
    if (*strings.self_test == "once") {
      switches.self_test = SelfTestMode::kOnce;
    } else if (*strings.self_test == "always") {
      switches.self_test = SelfTestMode::kAlways;
    } else if (*strings.self_test == "off") {
      switches.self_test = SelfTestMode::kOff;
    } else {
      return unknown("TERN_KERNEL_SELFTEST", *strings.self_test, "once, always or off");
    }
  }
  if (strings.verify) {
    if (*strings.verify != "0" && *strings.verify != "1") {
      return unknown("TERN_KERNEL_VERIFY", *strings.verify, "0 or 1");
    }
    switches.verify = *strings.verify == "1";
  }
  return switches;
}

}  // namespace tern::gpu
