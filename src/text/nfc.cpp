// Normalisation form C on top of utf8proc's tables, in time linear in the text.
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/utf8.h"
#include "text/stop_request.h"
#include "text/unicode.h"

namespace tern::text {
namespace {

// Below U+0300 every character is in NFC, has combining class 0 and composes with nothing before
// it: a boundary. In UTF-8 these are exactly the characters whose bytes are all below 0xCC.
constexpr char32_t kFirstComplex = 0x0300;
constexpr unsigned char kFirstComplexByte = 0xCC;

// Hugging Face normalises by the tables of Unicode 9, for which a character that came later
// combines with nothing and is not put in order. These are the later ones for which that matters:
// marks with a combining class, and U+11930, the second half of the one later composition.
struct Range {
  char32_t first, last;
};
constexpr std::array kSinceUnicode9 = {
    Range{0x07FD, 0x07FD},   Range{0x0898, 0x089F},   Range{0x08CA, 0x08D3},
    Range{0x09FE, 0x09FE},   Range{0x0C3C, 0x0C3C},   Range{0x0D3B, 0x0D3C},
    Range{0x0EBA, 0x0EBA},   Range{0x1715, 0x1715},   Range{0x1ABF, 0x1ACE},
    Range{0x1DF6, 0x1DFA},   Range{0xA82C, 0xA82C},   Range{0x10D24, 0x10D27},
    Range{0x10EAB, 0x10EAC}, Range{0x10EFD, 0x10EFF}, Range{0x10F46, 0x10F50},
    Range{0x10F82, 0x10F85}, Range{0x11070, 0x11070}, Range{0x1133B, 0x1133B},
    Range{0x1145E, 0x1145E}, Range{0x11839, 0x1183A}, Range{0x11930, 0x11930},
    Range{0x1193D, 0x1193E}, Range{0x11943, 0x11943}, Range{0x119E0, 0x119E0},
    Range{0x11A34, 0x11A34}, Range{0x11A47, 0x11A47}, Range{0x11A99, 0x11A99},
    Range{0x11D42, 0x11D42}, Range{0x11D44, 0x11D45}, Range{0x11D97, 0x11D97},
    Range{0x11F41, 0x11F42}, Range{0x16FF0, 0x16FF1}, Range{0x1E08F, 0x1E08F},
    Range{0x1E130, 0x1E136}, Range{0x1E2AE, 0x1E2AE}, Range{0x1E2EC, 0x1E2EF},
    Range{0x1E4EC, 0x1E4EF}};

bool is_since_unicode_9(char32_t code) {
  const auto* at = std::lower_bound(kSinceUnicode9.begin(), kSinceUnicode9.end(), code,
                                    [](const Range& r, char32_t c) { return r.last < c; });
  return at != kSinceUnicode9.end() && code >= at->first;
}

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

std::size_t find_complex(std::string_view text, std::size_t from) {
  while (from < text.size() && byte_at(text, from) < kFirstComplexByte) ++from;
  return from;
}

// The start of the simple character that ends at `end`, since the next one may compose with it;
// `end` itself where there is none after `begin`.
std::size_t step_back(std::string_view text, std::size_t begin, std::size_t end) {
  if (end == begin) return end;
  const unsigned char last = byte_at(text, end - 1);
  if (last < 0x80) return end - 1;
  const bool two_bytes = end - begin >= 2 && last < 0xC0 && byte_at(text, end - 2) >= 0xC2;
  return two_bytes ? end - 2 : end;
}

void decompose(char32_t code, std::vector<utf8proc_int32_t>& out) {
  utf8proc_int32_t parts[32];  // a canonical decomposition has at most 4
  int last_boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(code), parts, 32,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE), &last_boundary);
  if (count >= 1 && count <= 32) {
    out.insert(out.end(), parts, parts + count);
  } else {
    out.push_back(static_cast<utf8proc_int32_t>(code));
  }
}

int combining_class(utf8proc_int32_t code) {
  return is_since_unicode_9(static_cast<char32_t>(code))
             ? 0
             : utf8proc_get_property(code)->combining_class;
}

// Canonical order. utf8proc's own ordering swaps neighbours, which is quadratic in the number of
// marks on one character; a text may consist of nothing but marks.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  for (std::size_t i = 0; i < codes.size();) {
    if (combining_class(codes[i]) == 0) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < codes.size() && combining_class(codes[end]) != 0) ++end;
    const auto first = codes.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = codes.begin() + static_cast<std::ptrdiff_t>(end);
    std::stable_sort(first, last, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    i = end;
  }
}

// Normalises the stretch of valid text that starts at `begin` and reaches to the next character
// that nothing before it combines with, or to an invalid byte; returns its end, and appends its
// normal form.
std::size_t normalize_stretch(std::string_view text, std::size_t begin,
                              std::vector<utf8proc_int32_t>& codes, std::string& out,
                              const CancelToken& cancel) {
  codes.clear();
  std::size_t at = begin;
  while (at < text.size()) {
    stop_if_requested(cancel);
    const DecodedUtf8 c = decode_utf8(text.substr(at, 4));
    if (!c.valid) break;
    if (at > begin && (c.code_point < kFirstComplex || is_since_unicode_9(c.code_point))) break;
    decompose(c.code_point, codes);
    at += c.length;
  }
  order_marks(codes);
  stop_if_requested(cancel);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(out, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  }
  return at;
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage, const CancelToken& cancel) {
  std::size_t complex = find_complex(text, 0);
  if (complex == text.size()) return text;
  storage.clear();
  storage.reserve(text.size() + text.size() / 8);
  std::vector<utf8proc_int32_t> codes;
  std::size_t at = 0;  // everything before is in storage
  while (at < text.size()) {
    complex = find_complex(text, at);
    const std::size_t start = complex < text.size() ? step_back(text, at, complex) : text.size();
    storage.append(text, at, start - at);
    if (start == text.size()) break;
    at = normalize_stretch(text, start, codes, storage, cancel);
    if (at == start) storage.push_back(text[at++]);  // not valid UTF-8: kept
  }
  return storage;
}

}  // namespace tern::text
