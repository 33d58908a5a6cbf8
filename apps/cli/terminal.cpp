// Asks the operating system about the standard streams, and writes to stdout.
#include "cli/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/cli_error.h"
#include "cli/utf8_text.h"

namespace tern::cli {

void occupy_standard_streams() noexcept {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free: this one. Opened the wrong way round, so that its use fails.
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

Terminal Terminal::look(const Environment& environment) {
  Terminal terminal;
  terminal.in_is_terminal = isatty(STDIN_FILENO) == 1;
  terminal.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  terminal.err_is_terminal = isatty(STDERR_FILENO) == 1;
  terminal.is_dumb = environment.get("TERM").value_or("") == "dumb";
  terminal.err_has_color = terminal.err_is_terminal && !terminal.is_dumb &&
                           environment.get("NO_COLOR").value_or("").empty();
  return terminal;
}

std::size_t Terminal::columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string Terminal::dimmed(std::string_view text) const {
  if (!err_has_color) return std::string(text);
  return fmt::format("\x1b[2m{}\x1b[0m", text);
}

void Output::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      if (errno == EPIPE) throw BrokenPipe{};
      const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
      fail(is_full ? ErrorCode::kDiskFull : ErrorCode::kIo, "stdout", "cannot be written: {}",
           std::strerror(errno));
    }
    if (written > 0) last_byte_ = bytes[static_cast<std::size_t>(written) - 1];
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Output::write_text(std::string_view text) {
  if (is_terminal_) return write(visible(text, false));
  write(text);
}

void write_to_stderr(std::string_view text) noexcept {
  constexpr int kPatienceMs = 1000;  // of a reader that does not keep up
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (errno != EAGAIN || poll(&ready, 1, kPatienceMs) <= 0) return;
  }
}

void print_line(std::string_view line) { write_to_stderr(std::string(line) + "\n"); }

void print_warning(std::string_view sentence) {
  print_line(fmt::format("warning: {}", visible(sentence, true)));
}

}  // namespace tern::cli
