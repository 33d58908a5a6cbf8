// The time of day that a template may ask for, passed in from outside.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tern::text {

// Local time, without a zone.
struct Clock {
  int year = 1970;
  int month = 1;  // 1..12
  int day = 1;    // 1..31
  int hour = 0;
  int minute = 0;
  int second = 0;

  [[nodiscard]] static Clock now();
  // "2026-11-30 16:03:21" or "2026-11-30"; nothing when it is no such time.
  [[nodiscard]] static std::optional<Clock> parse(std::string_view text);
};

namespace jinja {
// strftime in the C locale. Unknown directives stay as they are written.
[[nodiscard]] std::string format_time(const Clock& clock, std::string_view format);
}  // namespace jinja

}  // namespace tern::text
