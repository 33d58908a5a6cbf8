// The time of day that a template may ask for, and strftime in the C locale.
#include "text/chat_template/clock.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>

namespace tern::text {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in_month(int year, int month) {
  constexpr std::array<int, 12> kLengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : kLengths[static_cast<std::size_t>(month - 1)];
}

int day_of_year(const Clock& clock) {  // 0..365
  int day = clock.day - 1;
  for (int month = 1; month < clock.month; ++month) day += days_in_month(clock.year, month);
  return day;
}

int weekday(const Clock& clock) {  // 0 = Sunday
  const std::chrono::year_month_day date{std::chrono::year(clock.year),
                                         std::chrono::month(static_cast<unsigned>(clock.month)),
                                         std::chrono::day(static_cast<unsigned>(clock.day))};
  return static_cast<int>(std::chrono::weekday(std::chrono::sys_days(date)).c_encoding());
}

// ISO 8601: weeks start on Monday, week 1 holds the first Thursday.
struct IsoWeek {
  int year;
  int week;
};
IsoWeek iso_week(const Clock& clock) {
  const int monday_based = (weekday(clock) + 6) % 7;
  const int week = (day_of_year(clock) - monday_based + 10) / 7;
  if (week < 1) {
    return {clock.year - 1, iso_week({clock.year - 1, 12, 31, 0, 0, 0}).week};
  }
  if (week == 53) {
    const int last_weekday = (weekday({clock.year, 12, 31, 0, 0, 0}) + 6) % 7;
    if (last_weekday < 3) return {clock.year + 1, 1};
  }
  return {clock.year, week};
}

// A number of `width` digits; flag '-' drops the padding, '_' pads with blanks.
std::string number(int value, int width, char flag, char pad = '0') {
  if (flag == '-') return fmt::format("{}", value);
  if (flag == '_' || (pad == ' ' && flag != '0')) return fmt::format("{:>{}}", value, width);
  return fmt::format("{:0>{}}", value, width);
}

std::string expand(const Clock& c, char directive, char flag) {
  const auto month = static_cast<std::size_t>(c.month - 1);
  const auto day = static_cast<std::size_t>(weekday(c));
  const int hour12 = c.hour % 12 == 0 ? 12 : c.hour % 12;
  switch (directive) {
    case 'a':
      return std::string(kDays[day].substr(0, 3));
    case 'A':
      return std::string(kDays[day]);
    case 'b':
    case 'h':
      return std::string(kMonths[month].substr(0, 3));
    case 'B':
      return std::string(kMonths[month]);
    case 'C':
      return number(c.year / 100, 2, flag);
    case 'd':
      return number(c.day, 2, flag);
    case 'e':
      return number(c.day, 2, flag, ' ');
    case 'G':
      return number(iso_week(c).year, 1, flag);
    case 'g':
      return number(iso_week(c).year % 100, 2, flag);
    case 'H':
      return number(c.hour, 2, flag);
    case 'I':
      return number(hour12, 2, flag);
    case 'j':
      return number(day_of_year(c) + 1, 3, flag);
    case 'k':
      return number(c.hour, 2, flag, ' ');
    case 'l':
      return number(hour12, 2, flag, ' ');
    case 'm':
      return number(c.month, 2, flag);
    case 'M':
      return number(c.minute, 2, flag);
    case 'n':
      return "\n";
    case 'f':
      return "000000";
    case 'p':
      return c.hour < 12 ? "AM" : "PM";
    case 'P':
      return c.hour < 12 ? "am" : "pm";
    case 'S':
      return number(c.second, 2, flag);
    case 't':
      return "\t";
    case 'u':
      return number(day == 0 ? 7 : static_cast<int>(day), 1, flag);
    case 'U':
      return number((day_of_year(c) + 7 - static_cast<int>(day)) / 7, 2, flag);
    case 'V':
      return number(iso_week(c).week, 2, flag);
    case 'w':
      return number(static_cast<int>(day), 1, flag);
    case 'W':
      return number((day_of_year(c) + 7 - (static_cast<int>(day) + 6) % 7) / 7, 2, flag);
    case 'y':
      return number(c.year % 100, 2, flag);
    case 'Y':
      return number(c.year, 1, flag);
    case 'z':
    case 'Z':
      return "";  // local time without a zone
    case '%':
      return "%";
    default:
      return {'%', directive};
  }
}

// Directives that stand for several others.
std::string_view composed(char directive) {
  switch (directive) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'r':
      return "%I:%M:%S %p";
    case 'R':
      return "%H:%M";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    default:
      return {};
  }
}

bool read_number(std::string_view& text, std::size_t digits, int& value) {
  if (text.size() < digits) return false;
  value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool skip(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Clock Clock::now() {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm local{};
  localtime_r(&seconds, &local);
  return {local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
          local.tm_hour,        local.tm_min,     local.tm_sec};
}

std::optional<Clock> Clock::parse(std::string_view text) {
  Clock clock;
  if (!read_number(text, 4, clock.year) || !skip(text, "-") || !read_number(text, 2, clock.month) ||
      !skip(text, "-") || !read_number(text, 2, clock.day)) {
    return std::nullopt;
  }
  if (!text.empty() && (!skip(text, " T") || !read_number(text, 2, clock.hour) ||
                        !skip(text, ":") || !read_number(text, 2, clock.minute) ||
                        !skip(text, ":") || !read_number(text, 2, clock.second) || !text.empty())) {
    return std::nullopt;
  }
  if (clock.year < 1 || clock.month < 1 || clock.month > 12 || clock.day < 1 ||
      clock.day > days_in_month(clock.year, clock.month) || clock.hour > 23 || clock.minute > 59 ||
      clock.second > 60) {
    return std::nullopt;
  }
  return clock;
}

namespace jinja {

std::string format_time(const Clock& clock, std::string_view format) {
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    char flag = 0;
    if ((format[i + 1] == '-' || format[i + 1] == '_' || format[i + 1] == '0') &&
        i + 2 < format.size()) {
      flag = format[++i];
    }
    const char directive = format[++i];
    const std::string_view parts = composed(directive);
    // Composed formats hold no composed ones, so this goes one level deep.
    out += parts.empty() ? expand(clock, directive, flag) : format_time(clock, parts);
  }
  return out;
}

}  // namespace jinja
}  // namespace tern::text
