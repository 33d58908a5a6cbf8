// The time of day that a template may ask for, passed in from outside.
#pragma once

#include <string>
#include <string_view>

namespace tern::text {

// A time in UTC, as everywhere in Tern; templates see it without a zone.
struct Clock {
  int year = 1970;
  int month = 1;  // 1..12
  int day = 1;    // 1..31
  int hour = 0;
  int minute = 0;
  int second = 0;

  [[nodiscard]] static Clock now();
};

namespace jinja {
// strftime in the C locale. Unknown directives stay as they are written.
[[nodiscard]] std::string format_time(const Clock& clock, std::string_view format);
}  // namespace jinja

}  // namespace tern::text
