// What the three standard streams are: terminals or not, colours, width; and the writer of stdout.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/environment.h"

namespace tern::cli {

// A reader of stdout that has gone: the work ends quietly, code 0.
struct BrokenPipe {};

struct Terminal {
  bool in_is_terminal = false, out_is_terminal = false, err_is_terminal = false;
  bool is_dumb = false;  // no cursor movement
  bool err_has_color = false;

  [[nodiscard]] static Terminal look(const Environment& environment);
  // Columns of the terminal on stderr; 80 when unknown.
  [[nodiscard]] static std::size_t columns();
  [[nodiscard]] std::string dimmed(std::string_view text) const;
};

// Descriptors 0, 1 and 2 that are closed become such that reading or writing them fails, so that no
// file that is opened later gets their numbers.
void occupy_standard_streams() noexcept;

// stdout, unbuffered, so that a stream of text arrives as it is made.
class Output {
 public:
  explicit Output(bool is_terminal) : is_terminal_(is_terminal) {}
  // Byte for byte. Throws BrokenPipe, or Error(kDiskFull, kIo).
  void write(std::string_view bytes);
  // Model output: on a terminal control characters are shown, not obeyed.
  void write_text(std::string_view text);
  [[nodiscard]] bool is_terminal() const { return is_terminal_; }
  // The last byte that was written, 0 before the first.
  [[nodiscard]] char last_byte() const { return last_byte_; }

 private:
  bool is_terminal_;
  char last_byte_ = 0;
};

// Text and one line on stderr. Nothing can be said about a stderr that is full or closed: there the
// text is dropped, and neither the work nor the exit code depends on it.
void write_to_stderr(std::string_view text) noexcept;
void print_line(std::string_view line);
// One line on stderr, control characters shown.
void print_warning(std::string_view sentence);

}  // namespace tern::cli
