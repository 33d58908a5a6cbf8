// Draws at most ten times a second and leaves one final line.
#include "cli/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.h"
#include "cli/utf8_text.h"

namespace tern::cli {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Loading is shown once it has taken this long, a prompt after one second.
constexpr auto kDelay = milliseconds(300);
constexpr auto kPromptDelay = seconds(1);
constexpr auto kRedraw = milliseconds(100);
constexpr std::size_t kBarWidth = 20;

bool is_bytes(const Progress& p) { return p.unit == "bytes"; }

// The unit that suits the larger number: 1.2 / 2.3 GB.
struct Scale {
  double divisor;
  std::string_view name;
};
Scale scale_of(std::uint64_t bytes) {
  if (bytes >= 1'000'000'000) return {1e9, "GB"};
  if (bytes >= 1'000'000) return {1e6, "MB"};
  return {1e3, "kB"};
}

std::string amount(const Progress& p) {
  if (is_bytes(p)) {
    const Scale scale = scale_of(std::max(p.done, p.total));
    const double done = static_cast<double>(p.done) / scale.divisor;
    const double total = static_cast<double>(p.total) / scale.divisor;
    if (p.total == 0 || p.finished) return fmt::format("{:.1f} {}", done, scale.name);
    return fmt::format("{:.1f} / {:.1f} {}", done, total, scale.name);
  }
  if (p.total == 0 || p.finished) return fmt::format("{} {}", grouped(p.done), p.unit);
  return fmt::format("{} / {} {}", grouped(p.done), grouped(p.total), p.unit);
}

std::string rate(const Progress& p, double per_second) {
  if (is_bytes(p)) return fmt::format("{:.0f} MB/s", per_second / 1e6);
  if (p.unit == "tokens") return grouped(static_cast<std::uint64_t>(per_second)) + " t/s";
  return fmt::format("{:.1f} {}/s", per_second, p.unit);
}

std::string duration_text(double value) {
  if (value < 10) return fmt::format("{:.1f} s", value);
  if (value < 120) return fmt::format("{:.0f} s", value);
  return fmt::format("{:.0f} min", value / 60);
}

}  // namespace

ProgressMode progress_mode(const std::string& choice, bool quiet, const Terminal& terminal) {
  if (quiet || choice == "off") return ProgressMode::kOff;
  if (choice == "plain") return ProgressMode::kLines;
  return terminal.err_is_terminal && !terminal.is_dumb ? ProgressMode::kBar : ProgressMode::kLines;
}

ProgressBar::ProgressBar(ProgressMode mode)
    : ProgressBar(
          mode, 0, [] { return Clock::now(); },
          [](std::string_view text) { write_to_stderr(text); }) {}

ProgressBar::ProgressBar(ProgressMode mode, std::size_t columns, Now now, Write write)
    : mode_(mode), columns_(columns), now_(std::move(now)), write_(std::move(write)) {}

ProgressBar::~ProgressBar() { close(); }

ProgressFn ProgressBar::callback() {
  if (mode_ == ProgressMode::kOff) return {};
  return [this](const Progress& progress) { report(progress); };
}

std::string ProgressBar::figures(const Progress& p, double elapsed) const {
  std::string out = amount(p);
  const std::uint64_t done = p.done - std::min(p.done, work_.first_done);
  const double per_second = elapsed > 0 ? static_cast<double>(done) / elapsed : 0;
  if (per_second > 0) out += "  " + rate(p, per_second);
  if (p.finished || p.total == 0) {
    out += "  " + duration_text(elapsed);
  } else if (per_second > 0) {
    out +=
        "  " + duration_text(static_cast<double>(p.total - std::min(p.done, p.total)) / per_second);
  }
  return out;
}

std::string ProgressBar::bar_line(const Progress& p, double elapsed) const {
  if (p.finished || p.unit == "tokens") return fmt::format("{} {}", p.what, figures(p, elapsed));
  if (p.total == 0) {
    static constexpr std::string_view kSpinner = "|/-\\";
    const auto turn = static_cast<std::size_t>(elapsed * 10) % kSpinner.size();
    return fmt::format("{} {}  {}", kSpinner[turn], p.what, figures(p, elapsed));
  }
  const double share = std::min(1.0, static_cast<double>(p.done) / static_cast<double>(p.total));
  const auto filled = static_cast<std::size_t>(share * kBarWidth);
  std::string bar(filled, '=');
  if (filled < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  return fmt::format("{}  [{}]  {:.0f} %  {}", p.what, bar, share * 100, figures(p, elapsed));
}

void ProgressBar::report_bar(const Progress& p, Clock::time_point now, double elapsed) {
  if (!p.finished && work_.is_shown && now - work_.last_shown < kRedraw) return;
  const std::size_t columns = columns_ != 0 ? columns_ : Terminal::columns();
  // One column stays free: a full line would wrap.
  write_("\r\x1b[K" + cut_to(bar_line(p, elapsed), columns > 1 ? columns - 1 : 1));
  bar_is_open_ = true;
  work_.is_shown = true;
  work_.last_shown = now;
}

void ProgressBar::report_lines(const Progress& p, Clock::time_point now, double elapsed) {
  const bool is_tokens = p.unit == "tokens";
  // The fourth is the final line.
  const std::uint64_t most = p.finished ? 4 : 3;
  const int quarter =
      p.total == 0 ? 0 : static_cast<int>(std::min<std::uint64_t>(most, p.done * 4 / p.total));
  const bool is_due = now - work_.last_shown >= (is_tokens ? seconds(10) : seconds(30));
  const bool is_new = !is_tokens && p.total != 0 && quarter > work_.last_quarter;
  if (!p.finished && work_.is_shown && !is_due && !is_new) return;
  work_.last_quarter = quarter;
  work_.is_shown = true;
  work_.last_shown = now;
  if (p.total != 0 && !is_tokens) {
    const double share = static_cast<double>(p.done) / static_cast<double>(p.total);
    write_(
        fmt::format("{}  {:.0f} %  {}\n", p.what, std::min(1.0, share) * 100, figures(p, elapsed)));
  } else {
    write_(fmt::format("{} {}\n", p.what, figures(p, elapsed)));
  }
}

void ProgressBar::report(const Progress& progress) {
  if (mode_ == ProgressMode::kOff) return;
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = now_();
  if (work_.what != progress.what) {
    if (bar_is_open_) write_("\n");
    bar_is_open_ = false;
    work_ = Work{std::string(progress.what), now, now, progress.done, -1, false};
  }
  const auto delay = progress.unit == "tokens" ? Clock::duration(kPromptDelay) : kDelay;
  const bool is_short = now - work_.start < delay && !work_.is_shown;
  const double elapsed = duration<double>(now - work_.start).count();
  if (!is_short) {
    if (mode_ == ProgressMode::kBar) {
      report_bar(progress, now, elapsed);
    } else {
      report_lines(progress, now, elapsed);
    }
  }
  if (progress.finished) {
    if (bar_is_open_) write_(leaves_line_ ? "\n" : "\r\x1b[K");
    bar_is_open_ = false;
    work_ = Work{};
  }
}

void ProgressBar::close() {
  const std::lock_guard lock(mutex_);
  if (bar_is_open_) write_("\n");
  bar_is_open_ = false;
}

}  // namespace tern::cli
