// Reads the SWM_* variables.
#include "options.h"

#include <cstdio>
#include <cstdlib>

namespace swm {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return std::string(value);
}

Options options_from_environment() {
  Options o;
  if (const auto order = environment("SWM_ORDER")) {
    if (*order == "rev") {
      o.order = Order::kReverse;
    } else if (*order == "rand") {
      o.order = Order::kRandom;
    } else if (*order != "fwd") {
      std::fprintf(stderr, "software Metal: SWM_ORDER is '%s'; it is fwd, rev or rand\n",
                   order->c_str());
      std::abort();
    }
  }
  if (const auto seed = environment("SWM_SEED")) o.seed = std::strtoull(seed->c_str(), nullptr, 0);
  if (const auto n = environment("SWM_WORKERS"))
    o.workers = static_cast<unsigned>(std::strtoul(n->c_str(), nullptr, 0));
  if (environment("SWM_LAX")) o.strict = false;
  return o;
}

}  // namespace swm
