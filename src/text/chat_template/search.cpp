// Finding text in text in linear time and constant memory, whatever the two are.
#include <algorithm>
#include <cstring>

#include "text/chat_template/characters.h"

namespace tern::text::jinja {
namespace {

constexpr auto kNpos = std::string_view::npos;

// The start of the largest suffix of x in the order of bytes (or in the opposite one), and its
// period.
struct Suffix {
  std::size_t start;
  std::size_t period;
};
Suffix largest_suffix(std::string_view x, bool opposite) {
  std::size_t start = 0;
  std::size_t candidate = 1;
  std::size_t offset = 0;
  std::size_t period = 1;
  while (candidate + offset < x.size()) {
    const auto a = static_cast<unsigned char>(x[start + offset]);
    const auto b = static_cast<unsigned char>(x[candidate + offset]);
    if (a == b) {
      if (++offset == period) {
        candidate += period;
        offset = 0;
      }
    } else if ((b < a) != opposite) {
      candidate += offset + 1;
      offset = 0;
      period = candidate - start;
    } else {
      start = candidate++;
      offset = 0;
      period = 1;
    }
  }
  return {start, period};
}

// Crochemore and Perrin's two-way search: the needle is cut where no shorter shift than the one
// that a mismatch tells can fit, and is compared right of the cut first, then left of it.
std::size_t two_way(std::string_view text, std::string_view needle) {
  const Suffix up = largest_suffix(needle, false);
  const Suffix down = largest_suffix(needle, true);
  const std::size_t cut = std::max(up.start, down.start);
  std::size_t period = up.start > down.start ? up.period : down.period;
  const std::size_t size = needle.size();
  const bool periodic =
      cut + period <= size && std::memcmp(needle.data(), needle.data() + period, cut) == 0;
  if (!periodic) period = std::max(cut, size - cut) + 1;
  std::size_t known = 0;  // bytes at the start of the needle that are known to fit
  for (std::size_t at = 0; at + size <= text.size();) {
    std::size_t i = std::max(cut, known);
    while (i < size && needle[i] == text[at + i]) ++i;
    if (i < size) {
      at += i - cut + 1;
      known = 0;
      continue;
    }
    i = cut;
    while (i > known && needle[i - 1] == text[at + i - 1]) --i;
    if (i <= known) return at;
    at += period;
    known = periodic ? size - period : 0;
  }
  return kNpos;
}

// Work that the plain search may do for nothing, beyond some bytes per byte of the text.
constexpr std::size_t kPlainWork = 1 << 12;

}  // namespace

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size() || needle.size() > text.size() - from) return kNpos;
  if (needle.size() < 2) return text.find(needle, from);
  const char* const end = text.data() + text.size();
  const char* at = text.data() + from;
  std::size_t work = 0;
  while (static_cast<std::size_t>(end - at) >= needle.size()) {
    at = static_cast<const char*>(
        std::memchr(at, needle.front(), static_cast<std::size_t>(end - at) - needle.size() + 1));
    if (at == nullptr) return kNpos;
    if (std::memcmp(at, needle.data(), needle.size()) == 0) {
      return static_cast<std::size_t>(at - text.data());
    }
    work += needle.size();
    ++at;
    const auto seen = static_cast<std::size_t>(at - text.data()) - from;
    if (work > kPlainWork + 2 * seen) {
      const std::size_t begin = from + seen;
      const std::size_t found = two_way(text.substr(begin), needle);
      return found == kNpos ? kNpos : begin + found;
    }
  }
  return kNpos;
}

std::size_t find_last_text(std::string_view text, std::string_view needle) {
  if (needle.size() < 2 || text.size() < 64) return text.rfind(needle);
  const std::string backwards(text.rbegin(), text.rend());
  const std::string last_first(needle.rbegin(), needle.rend());
  const std::size_t found = find_text(backwards, last_first);
  return found == kNpos ? kNpos : text.size() - found - needle.size();
}

}  // namespace tern::text::jinja
