#include "backend/choice/units.h"

#include <fmt/format.h>

#include <cmath>

namespace tern::backend {

std::string to_string(Seconds time) {
  const double s = time.value();
  if (!std::isfinite(s)) return "no time";
  if (s < 1e-6) return fmt::format("{:.0f} ns", s * 1e9);
  if (s < 1e-4) return fmt::format("{:.1f} us", s * 1e6);
  if (s < 1e-3) return fmt::format("{:.0f} us", s * 1e6);
  if (s < 1) return fmt::format("{:.2f} ms", s * 1e3);
  return fmt::format("{:.2f} s", s);
}

}  // namespace tern::backend
