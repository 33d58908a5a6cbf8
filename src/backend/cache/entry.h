// The bytes of an entry file: layout, writing, and a parser that trusts nothing.
//
//   offset  size  content (little endian)
//   0       8     magic "TERNKC\r\n"
//   8       4     format version
//   12      4     payload kind
//   16      8     payload length
//   24      4     key text length
//   28      4     entry-point list length
//   32      32    SHA-256 of key text and entry-point list
//   64      32    SHA-256 of the payload
//   96            key text; entry-point list (names, one per line); zeros up to a multiple of 64;
//                 payload; end mark "TKCEND\r" and the payload kind as one byte
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tern::cache {

enum class PayloadKind : std::uint32_t {
  kCubin = 1,
  kMetallib = 2,
  kBinaryArchive = 3,
  kTuningTable = 4,
  kSelfTest = 5,
};
[[nodiscard]] std::string_view name_of(PayloadKind kind);

inline constexpr std::size_t kEntryHeaderBytes = 96;
inline constexpr std::uint64_t kMostPayloadBytes = std::uint64_t{256} << 20;

// What a header announces; the lengths add up to the size of the file.
struct EntryHeader {
  PayloadKind kind = PayloadKind::kCubin;
  std::uint64_t payload_bytes = 0;
  std::uint32_t key_bytes = 0;
  std::uint32_t entry_points_bytes = 0;
  std::uint64_t payload_offset = 0;
};

// Views into the parsed bytes.
struct EntryView {
  PayloadKind kind = PayloadKind::kCubin;
  std::string_view key_text;
  std::string_view entry_points;  // one name per line
  std::span<const std::byte> payload;

  [[nodiscard]] std::vector<std::string> entry_point_names() const;
};

// Looks at the first 96 bytes before anything is allocated. Errors: kInvalidFile, with the offset.
[[nodiscard]] Result<EntryHeader> parse_entry_header(std::span<const std::byte> bytes,
                                                     std::uint64_t file_bytes);
// The whole file: lengths, padding, end mark and both hashes.
[[nodiscard]] Result<EntryView> parse_entry(std::span<const std::byte> bytes);

// Errors: kInvalidArgument (key above 1 MiB, payload above 256 MiB, a name with a newline).
[[nodiscard]] Result<std::vector<std::byte>> encode_entry(PayloadKind kind,
                                                          std::string_view key_text,
                                                          std::span<const std::string> entry_points,
                                                          std::span<const std::byte> payload);

}  // namespace tern::cache
