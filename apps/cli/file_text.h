// Whole files and stdin as bytes, and SHA-256 of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cli/interrupt.h"

namespace tern::cli {

// The most bytes of an input, by its use.
enum class InputLimit : std::uint64_t {
  kTemplate = std::uint64_t{1} << 20U,   // a chat template; as the library takes it
  kPrompt = std::uint64_t{64} << 20U,    // a text for a model, ids
  kJson = std::uint64_t{64} << 20U,      // a request, a line of requests
  kMeasured = std::uint64_t{256} << 20U  // a text to measure, the rows of a benchmark
};

// Byte for byte; "-" is stdin.
// Errors: kNotFound, kIo, kInvalidArgument when there is more than the limit (a regular file is
// refused before it is read), kCancelled when a signal came while waiting.
[[nodiscard]] std::string read_file(const std::string& path, InputLimit limit,
                                    const Interrupt& interrupt);

// Calls `each` for every line (without its line feed; a last line needs none) as soon as it is
// there. A line holds at most InputLimit::kJson.
void for_each_line(const std::string& path, const Interrupt& interrupt,
                   const std::function<void(std::string_view line)>& each);

// 64 hexadecimal digits.
[[nodiscard]] std::string sha256_of_text(std::string_view text);
[[nodiscard]] std::string sha256_of_file(const std::string& path, const Interrupt& interrupt);

}  // namespace tern::cli
