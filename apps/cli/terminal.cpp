// Asks the operating system about the standard streams, and writes to stdout.
#include "cli/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/cli_error.h"
#include "cli/utf8_text.h"

namespace tern::cli {

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
      const bool is_full = errno == ENOSPC || errno == EDQUOT;
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

void print_warning(std::string_view sentence) {
  fmt::print(stderr, "warning: {}\n", visible(sentence, true));
}

}  // namespace tern::cli
