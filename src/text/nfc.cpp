// Normalisation form C on top of utf8proc's tables, in time linear in the text.
#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/utf8.h"
#include "text/unicode.h"

namespace tern::text {
namespace {

// Below U+0300 every character is in NFC, has combining class 0 and composes with nothing before
// it: a boundary. In UTF-8 these are exactly the characters whose bytes are all below 0xCC.
constexpr char32_t kFirstComplex = 0x0300;
constexpr unsigned char kFirstComplexByte = 0xCC;

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

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

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

// Normalises the stretch of valid text that starts at `begin` and reaches to the next boundary or
// invalid byte; returns its end, and appends its normal form.
std::size_t normalize_stretch(std::string_view text, std::size_t begin,
                              std::vector<utf8proc_int32_t>& codes, std::string& out) {
  codes.clear();
  std::size_t at = begin;
  while (at < text.size()) {
    const DecodedUtf8 c = decode_utf8(text.substr(at, 4));
    if (!c.valid || (at > begin && c.code_point < kFirstComplex)) break;
    decompose(c.code_point, codes);
    at += c.length;
  }
  order_marks(codes);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(out, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  }
  return at;
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
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
    at = normalize_stretch(text, start, codes, storage);
    if (at == start) storage.push_back(text[at++]);  // not valid UTF-8: kept
  }
  return storage;
}

}  // namespace tern::text
