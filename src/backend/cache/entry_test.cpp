#include "backend/cache/entry.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cache/faults_test.h"

namespace tern::cache {
namespace {

std::vector<std::byte> entry_bytes() {
  const std::vector<std::string> names = {"first", "second"};
  return *encode_entry(PayloadKind::kCubin, "format=1\nkernel=k\n", names, bytes_of("the payload"));
}

TEST(CacheEntry, ReadsWhatWasWritten) {
  const std::vector<std::byte> bytes = entry_bytes();
  const EntryView view = *parse_entry(bytes);
  EXPECT_EQ(view.kind, PayloadKind::kCubin);
  EXPECT_EQ(view.key_text, "format=1\nkernel=k\n");
  EXPECT_EQ(view.entry_point_names(), (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(text_of(view.payload), "the payload");
}

TEST(CacheEntry, LayoutIsThatOfTheFormat) {
  const std::vector<std::byte> bytes = entry_bytes();
  const std::string text = text_of(bytes);
  EXPECT_EQ(text.substr(0, 8), "TERNKC\r\n");
  EXPECT_EQ(text.substr(8, 8), std::string("\1\0\0\0\1\0\0\0", 8));
  EXPECT_EQ(text.substr(16, 16), std::string("\13\0\0\0\0\0\0\0\22\0\0\0\15\0\0\0", 16));
  EXPECT_EQ(text.substr(96, 31), "format=1\nkernel=k\nfirst\nsecond\n");
  EXPECT_EQ(text.substr(127, 1), std::string(1, '\0'));
  EXPECT_EQ(text.substr(128, 11), "the payload");
  EXPECT_EQ(text.substr(139), "TKCEND\r\1");
}

TEST(CacheEntry, EveryKindAndAnEmptyPayload) {
  for (std::uint32_t kind = 1; kind <= 5; ++kind) {
    const auto bytes = *encode_entry(static_cast<PayloadKind>(kind), "", {}, {});
    EXPECT_EQ(static_cast<std::uint32_t>(parse_entry(bytes)->kind), kind);
    EXPECT_TRUE(parse_entry(bytes)->entry_point_names().empty());
  }
}

TEST(CacheEntry, EveryFlippedBitIsSeen) {
  std::vector<std::byte> bytes = entry_bytes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      const auto flip = static_cast<std::byte>(1 << bit);
      bytes[i] ^= flip;
      EXPECT_FALSE(parse_entry(bytes).ok()) << "byte " << i << " bit " << bit;
      bytes[i] ^= flip;
    }
  }
  EXPECT_TRUE(parse_entry(bytes).ok());
}

TEST(CacheEntry, EveryLengthButTheRightOneIsSeen) {
  std::vector<std::byte> bytes = entry_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<EntryView> view = parse_entry(std::span(bytes).first(size));
    ASSERT_FALSE(view.ok()) << size;
    EXPECT_EQ(view.error().code(), ErrorCode::kInvalidFile);
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(parse_entry(bytes).ok());
}

TEST(CacheEntry, LengthsAreCheckedBeforeAnythingIsAllocated) {
  std::vector<std::byte> bytes = entry_bytes();
  const auto set = [&bytes](std::size_t offset, std::uint64_t value, std::size_t size) {
    std::memcpy(bytes.data() + offset, &value, size);
  };
  set(16, UINT64_MAX, 8);
  EXPECT_FALSE(parse_entry_header(bytes, bytes.size()).ok());
  set(16, kMostPayloadBytes + 1, 8);
  EXPECT_FALSE(parse_entry_header(bytes, kMostPayloadBytes + 1 + 136).ok());
  set(16, 11, 8);
  set(24, UINT32_MAX, 4);
  EXPECT_FALSE(parse_entry_header(bytes, bytes.size()).ok());
  set(24, 18, 4);
  EXPECT_TRUE(parse_entry_header(bytes, bytes.size()).ok());
}

TEST(CacheEntry, WritingRefusesWhatItCouldNotRead) {
  const std::vector<std::string> broken = {"two\nlines"};
  EXPECT_FALSE(encode_entry(PayloadKind::kCubin, "", broken, {}).ok());
  const std::vector<std::string> empty = {""};
  EXPECT_FALSE(encode_entry(PayloadKind::kCubin, "", empty, {}).ok());
  EXPECT_FALSE(encode_entry(PayloadKind::kCubin, std::string(kMostKeyBytes + 1, 'k'), {}, {}).ok());
}

}  // namespace
}  // namespace tern::cache
