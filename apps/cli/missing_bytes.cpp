// Compares a text with what its tokens stand for, where the vocabulary lacks one of its bytes.
#include "cli/missing_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace tern::cli {
namespace {

using Counts = std::array<std::size_t, 256>;

Counts count_bytes(std::string_view text) {
  Counts counts{};
  for (const char c : text) ++counts[static_cast<unsigned char>(c)];
  return counts;
}

}  // namespace

void warn_missing_bytes(const Tokenizer& tokenizer, std::string_view subject, std::string_view text,
                        std::span<const std::int32_t> ids) {
  const std::vector<std::uint8_t> missing = tokenizer.missing_bytes();
  if (missing.empty()) return;
  const Counts given = count_bytes(text);
  const auto is_given = [&](std::uint8_t byte) { return given[byte] > 0; };
  if (std::none_of(missing.begin(), missing.end(), is_given)) return;
  // A byte without a token of its own may still be in a longer one, such as an added token.
  const Result<std::string> kept_text = tokenizer.decode(ids, false);
  if (!kept_text.ok()) return;
  const Counts kept = count_bytes(*kept_text);
  std::string names;
  std::size_t bytes = 0;
  for (const std::uint8_t byte : missing) {
    if (kept[byte] >= given[byte]) continue;
    names += fmt::format("{}0x{:02x}", bytes == 0 ? "" : ", ", byte);
    ++bytes;
  }
  if (bytes == 0) return;
  print_warning(fmt::format("{}: the vocabulary has no token for byte{} {}: left out", subject,
                            bytes == 1 ? "" : "s", names));
}

}  // namespace tern::cli
