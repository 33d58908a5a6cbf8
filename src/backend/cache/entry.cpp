#include "backend/cache/entry.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backend/cache/key.h"
#include "base/checked.h"
#include "base/hash.h"

namespace tern::cache {
namespace {

constexpr std::string_view kMagic = "TERNKC\r\n";
constexpr std::string_view kEndMark = "TKCEND\r";  // and the kind as one byte
constexpr std::size_t kEndBytes = 8;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHashBytes = 32;
constexpr std::uint32_t kMostEntryPointBytes = 1u << 20;

using Digest = std::array<std::byte, kHashBytes>;

Digest digest_of(std::span<const std::byte> bytes) {
  const std::string hex = sha256_hex(bytes);
  Digest digest{};
  const auto nibble = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i < kHashBytes; ++i) {
    digest[i] = static_cast<std::byte>(nibble(hex[2 * i]) * 16 + nibble(hex[2 * i + 1]));
  }
  return digest;
}

template <class Number>
Number read_number(std::span<const std::byte> bytes, std::size_t offset) {
  Number number = 0;
  for (std::size_t i = sizeof(Number); i-- > 0;) {
    number = static_cast<Number>(number << 8 | static_cast<Number>(bytes[offset + i]));
  }
  return number;
}

template <class Number>
void write_number(std::vector<std::byte>& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes.push_back(static_cast<std::byte>(number >> (8 * i) & 0xFF));
  }
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_known_kind(std::uint32_t kind) {
  return kind >= static_cast<std::uint32_t>(PayloadKind::kCubin) &&
         kind <= static_cast<std::uint32_t>(PayloadKind::kSelfTest);
}

Error bad(std::size_t offset, std::string_view what) {
  return fail(ErrorCode::kInvalidFile, "cache entry: {} (byte {})", what, offset);
}

std::uint64_t payload_offset_of(std::uint64_t text_bytes) {
  return *checked_align(kEntryHeaderBytes + text_bytes, kAlignment);  // both far below 2^32
}

Result<void> check_hash(std::span<const std::byte> bytes, std::span<const std::byte> expected,
                        std::size_t offset, std::string_view what) {
  const Digest digest = digest_of(bytes);
  if (!std::ranges::equal(digest, expected)) return bad(offset, what);
  return {};
}

}  // namespace

std::string_view name_of(PayloadKind kind) {
  switch (kind) {
    case PayloadKind::kCubin:
      return "cubin";
    case PayloadKind::kMetallib:
      return "metallib";
    case PayloadKind::kBinaryArchive:
      return "binary archive";
    case PayloadKind::kTuningTable:
      return "tuning table";
    case PayloadKind::kSelfTest:
      return "self-test record";
  }
  return "unknown";
}

std::vector<std::string> EntryView::entry_point_names() const {
  std::vector<std::string> names;
  std::string_view rest = entry_points;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    names.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return names;
}

Result<EntryHeader> parse_entry_header(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
  if (bytes.size() < kEntryHeaderBytes || file_bytes < kEntryHeaderBytes + kEndBytes) {
    return bad(std::min<std::uint64_t>(bytes.size(), file_bytes), "the file ends in the header");
  }
  if (text_of(bytes.first(kMagic.size())) != kMagic) return bad(0, "this is no cache entry");
  const auto version = read_number<std::uint32_t>(bytes, 8);
  if (version != static_cast<std::uint32_t>(kFormatVersion)) {
    return bad(8, fmt::format("format {}, expected {}", version, kFormatVersion));
  }
  const auto kind = read_number<std::uint32_t>(bytes, 12);
  if (!is_known_kind(kind)) return bad(12, fmt::format("payload kind {} is unknown", kind));
  EntryHeader header;
  header.kind = static_cast<PayloadKind>(kind);
  header.payload_bytes = read_number<std::uint64_t>(bytes, 16);
  header.key_bytes = read_number<std::uint32_t>(bytes, 24);
  header.entry_points_bytes = read_number<std::uint32_t>(bytes, 28);
  if (header.payload_bytes > kMostPayloadBytes) return bad(16, "the payload is above 256 MiB");
  if (header.key_bytes > kMostKeyBytes) return bad(24, "the key text is above 1 MiB");
  if (header.entry_points_bytes > kMostEntryPointBytes) {
    return bad(28, "the list of entry points is above 1 MiB");
  }
  header.payload_offset =
      payload_offset_of(std::uint64_t{header.key_bytes} + header.entry_points_bytes);
  const std::uint64_t expected = header.payload_offset + header.payload_bytes + kEndBytes;
  if (expected != file_bytes) {
    return bad(
        16, fmt::format("the lengths add up to {} bytes, the file has {}", expected, file_bytes));
  }
  return header;
}

Result<EntryView> parse_entry(std::span<const std::byte> bytes) {
  TERN_ASSIGN(const EntryHeader header, parse_entry_header(bytes, bytes.size()));
  const std::size_t text_bytes = std::size_t{header.key_bytes} + header.entry_points_bytes;
  const std::size_t payload_at = static_cast<std::size_t>(header.payload_offset);
  const std::size_t payload_bytes = static_cast<std::size_t>(header.payload_bytes);
  const auto texts = bytes.subspan(kEntryHeaderBytes, text_bytes);
  const auto padding =
      bytes.subspan(kEntryHeaderBytes + text_bytes, payload_at - kEntryHeaderBytes - text_bytes);
  const auto payload = bytes.subspan(payload_at, payload_bytes);
  const auto end = bytes.subspan(payload_at + payload_bytes);
  if (text_of(end.first(kEndMark.size())) != kEndMark ||
      static_cast<std::uint32_t>(end[kEndMark.size()]) != static_cast<std::uint32_t>(header.kind)) {
    return bad(payload_at + payload_bytes, "the end mark is missing");
  }
  if (std::ranges::any_of(padding, [](std::byte b) { return b != std::byte{0}; })) {
    return bad(kEntryHeaderBytes + text_bytes, "the padding is not zero");
  }
  TERN_TRY(check_hash(texts, bytes.subspan(32, kHashBytes), 32, "the key text is damaged"));
  TERN_TRY(check_hash(payload, bytes.subspan(64, kHashBytes), 64, "the payload is damaged"));
  EntryView view;
  view.kind = header.kind;
  view.key_text = text_of(texts.first(header.key_bytes));
  view.entry_points = text_of(texts.subspan(header.key_bytes));
  view.payload = payload;
  return view;
}

Result<std::vector<std::byte>> encode_entry(PayloadKind kind, std::string_view key_text,
                                            std::span<const std::string> entry_points,
                                            std::span<const std::byte> payload) {
  std::string list;
  for (const std::string& name : entry_points) {
    if (name.empty() || name.find('\n') != std::string::npos) {
      return fail(ErrorCode::kInvalidArgument,
                  "cache entry: the name of an entry point is empty or has a line break");
    }
    list += name;
    list += '\n';
  }
  if (key_text.size() > kMostKeyBytes || list.size() > kMostEntryPointBytes ||
      payload.size() > kMostPayloadBytes) {
    return fail(ErrorCode::kInvalidArgument,
                "cache entry: key text {} bytes, entry points {} bytes, payload {} bytes; at most "
                "1 MiB, 1 MiB and 256 MiB are stored",
                key_text.size(), list.size(), payload.size());
  }
  const std::string texts = std::string(key_text) + list;
  const std::uint64_t payload_at = payload_offset_of(texts.size());
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<std::size_t>(payload_at) + payload.size() + kEndBytes);
  const auto append = [&bytes](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(kMagic)));
  write_number(bytes, static_cast<std::uint32_t>(kFormatVersion));
  write_number(bytes, static_cast<std::uint32_t>(kind));
  write_number(bytes, static_cast<std::uint64_t>(payload.size()));
  write_number(bytes, static_cast<std::uint32_t>(key_text.size()));
  write_number(bytes, static_cast<std::uint32_t>(list.size()));
  append(digest_of(std::as_bytes(std::span(texts))));
  append(digest_of(payload));
  append(std::as_bytes(std::span(texts)));
  bytes.resize(static_cast<std::size_t>(payload_at));
  append(payload);
  append(std::as_bytes(std::span(kEndMark)));
  bytes.push_back(static_cast<std::byte>(kind));
  return bytes;
}

}  // namespace tern::cache
