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
std::string number(int value, int width, char flag, char pad) {
  if (flag == '-') return fmt::format("{}", value);
  if (flag == '_' || (pad == ' ' && flag != '0')) return fmt::format("{:>{}}", value, width);
  return fmt::format("{:0>{}}", value, width);
}

int hour12(const Clock& c) { return c.hour % 12 == 0 ? 12 : c.hour % 12; }

// Full weeks of the year whose first day is `first` (0 = Sunday); the days before are week 0.
int week_of_year(const Clock& c, int first) {
  return (day_of_year(c) + 7 - (weekday(c) + 7 - first) % 7) / 7;
}

struct NumberRow {
  char directive;
  int width;
  char pad;
  int (*value)(const Clock&);
};
constexpr std::array kNumbers = {
    NumberRow{'C', 2, '0', [](const Clock& c) { return c.year / 100; }},
    NumberRow{'G', 1, '0', [](const Clock& c) { return iso_week(c).year; }},
    NumberRow{'H', 2, '0', [](const Clock& c) { return c.hour; }},
    NumberRow{'I', 2, '0', hour12},
    NumberRow{'M', 2, '0', [](const Clock& c) { return c.minute; }},
    NumberRow{'S', 2, '0', [](const Clock& c) { return c.second; }},
    NumberRow{'U', 2, '0', [](const Clock& c) { return week_of_year(c, 0); }},
    NumberRow{'V', 2, '0', [](const Clock& c) { return iso_week(c).week; }},
    NumberRow{'W', 2, '0', [](const Clock& c) { return week_of_year(c, 1); }},
    NumberRow{'Y', 1, '0', [](const Clock& c) { return c.year; }},
    NumberRow{'d', 2, '0', [](const Clock& c) { return c.day; }},
    NumberRow{'e', 2, ' ', [](const Clock& c) { return c.day; }},
    NumberRow{'g', 2, '0', [](const Clock& c) { return iso_week(c).year % 100; }},
    NumberRow{'j', 3, '0', [](const Clock& c) { return day_of_year(c) + 1; }},
    NumberRow{'k', 2, ' ', [](const Clock& c) { return c.hour; }},
    NumberRow{'l', 2, ' ', hour12},
    NumberRow{'m', 2, '0', [](const Clock& c) { return c.month; }},
    NumberRow{'u', 1, '0', [](const Clock& c) { return weekday(c) == 0 ? 7 : weekday(c); }},
    NumberRow{'w', 1, '0', weekday},
    NumberRow{'y', 2, '0', [](const Clock& c) { return c.year % 100; }},
};

std::string_view day_name(const Clock& c) { return kDays[static_cast<std::size_t>(weekday(c))]; }
std::string_view month_name(const Clock& c) {
  return kMonths[static_cast<std::size_t>(c.month - 1)];
}

struct TextRow {
  char directive;
  std::string_view (*text)(const Clock&);
};
constexpr std::array kTexts = {
    TextRow{'%', [](const Clock&) { return std::string_view("%"); }},
    TextRow{'A', day_name},
    TextRow{'B', month_name},
    TextRow{'P', [](const Clock& c) { return std::string_view(c.hour < 12 ? "am" : "pm"); }},
    TextRow{'Z', [](const Clock&) { return std::string_view(); }},  // no zone, as in Python
    TextRow{'a', [](const Clock& c) { return day_name(c).substr(0, 3); }},
    TextRow{'b', [](const Clock& c) { return month_name(c).substr(0, 3); }},
    TextRow{'f', [](const Clock&) { return std::string_view("000000"); }},
    TextRow{'h', [](const Clock& c) { return month_name(c).substr(0, 3); }},
    TextRow{'n', [](const Clock&) { return std::string_view("\n"); }},
    TextRow{'p', [](const Clock& c) { return std::string_view(c.hour < 12 ? "AM" : "PM"); }},
    TextRow{'t', [](const Clock&) { return std::string_view("\t"); }},
    TextRow{'z', [](const Clock&) { return std::string_view(); }},
};

std::string expand(const Clock& c, char directive, char flag) {
  for (const NumberRow& row : kNumbers) {
    if (row.directive == directive) return number(row.value(c), row.width, flag, row.pad);
  }
  for (const TextRow& row : kTexts) {
    if (row.directive == directive) return std::string(row.text(c));
  }
  return {'%', directive};
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

}  // namespace

Clock Clock::now() {
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return {utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec};
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
