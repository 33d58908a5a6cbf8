// Whole files and stdin as bytes, and SHA-256 of them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cli/interrupt.h"

namespace tern::cli {

// Byte for byte; "-" is stdin. At most 1 GiB.
// Errors: kNotFound, kIo, kCancelled when a signal came while waiting.
[[nodiscard]] std::string read_file(const std::string& path, const Interrupt& interrupt);
[[nodiscard]] std::string read_stdin(const Interrupt& interrupt);

// Calls `each` for every line (without its line feed; a last line needs none) as soon as it is
// there. At most 256 MiB a line.
void for_each_line(const std::string& path, const Interrupt& interrupt,
                   const std::function<void(std::string_view line)>& each);

// 64 hexadecimal digits.
[[nodiscard]] std::string sha256_of_text(std::string_view text);
[[nodiscard]] std::string sha256_of_file(const std::string& path, const Interrupt& interrupt);

}  // namespace tern::cli
