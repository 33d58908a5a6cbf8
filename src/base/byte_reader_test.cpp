// Every read is checked against what remains, and an error moves nothing.
#include "base/byte_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace tern {
namespace {

using testing::HasSubstr;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int v : values) result.push_back(static_cast<std::byte>(v));
  return result;
}

TEST(Reader, ReadsLittleEndianNumbers) {
  const auto data = bytes_of({0x7f, 0x34, 0x12, 0x78, 0x56, 0x34, 0x92, 8, 7, 6, 5, 4, 3, 2, 1});
  Reader reader(data);
  EXPECT_EQ(reader.u8().value(), 0x7f);
  EXPECT_EQ(reader.u16().value(), 0x1234);
  EXPECT_EQ(reader.u32().value(), 0x92345678u);
  EXPECT_EQ(reader.u64().value(), 0x0102030405060708u);
  EXPECT_EQ(reader.position(), 15u);
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_FALSE(reader.u8().ok());
}

TEST(Reader, ReadsSignedNumbersAndFloats) {
  const auto data =
      bytes_of({0xff, 0xfe, 0xff, 0xfd, 0xff, 0xff, 0xff, 0,    0,    0xc0, 0x3f, 0,    0,   0,
                0,    0,    0,    0,    0xc0, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  Reader reader(data);
  EXPECT_EQ(reader.i8().value(), -1);
  EXPECT_EQ(reader.i16().value(), -2);
  EXPECT_EQ(reader.i32().value(), -3);
  EXPECT_EQ(reader.f32().value(), 1.5F);
  EXPECT_EQ(reader.f64().value(), -2.0);
  EXPECT_EQ(reader.i64().value(), -4);
}

TEST(Reader, RefusesANumberBeyondTheEndAndStays) {
  const auto data = bytes_of({1, 2, 3});
  Reader reader(data);
  const auto result = reader.u32();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidFile);
  EXPECT_EQ(result.error().message(), "4 bytes are needed at offset 0, but it ends at 3");
  EXPECT_EQ(reader.position(), 0u);
  EXPECT_EQ(reader.u16().value(), 0x0201);
}

TEST(Reader, TakesExactlyWhatRemainsAndNoMore) {
  const auto data = bytes_of({1, 2, 3, 4});
  Reader reader(data);
  EXPECT_FALSE(reader.take(5).ok());
  EXPECT_FALSE(reader.take(~std::uint64_t{0}).ok());
  const auto all = reader.take(4).value();
  EXPECT_EQ(all.data(), data.data());
  EXPECT_EQ(all.size(), 4u);
  EXPECT_EQ(reader.take(0).value().size(), 0u);
  EXPECT_FALSE(reader.skip(1).ok());
}

TEST(Reader, SeeksInsideOnly) {
  const auto data = bytes_of({1, 2, 3, 4});
  Reader reader(data);
  EXPECT_TRUE(reader.seek(4).ok());
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_FALSE(reader.seek(5).ok());
  EXPECT_TRUE(reader.seek(1).ok());
  EXPECT_TRUE(reader.skip(2).ok());
  EXPECT_EQ(reader.u8().value(), 4);
}

TEST(Reader, CountsAgainstWhatRemainsWithoutOverflow) {
  const std::vector<std::byte> data(100);
  Reader reader(data);
  EXPECT_EQ(reader.count(50, 2).value(), 50u);
  EXPECT_FALSE(reader.count(51, 2).ok());
  EXPECT_EQ(reader.count(14, 7).value(), 14u);
  EXPECT_FALSE(reader.count(15, 7).ok());
  // 2^61 * 8 is 0 in 64 bits.
  EXPECT_FALSE(reader.count(std::uint64_t{1} << 61, 8).ok());
  EXPECT_FALSE(reader.count(std::uint64_t{1} << 63, 13).ok());
  EXPECT_THAT(reader.count(101, 1).error().message(),
              HasSubstr("count 101 at offset 0 does not fit: 100 bytes remain"));
}

TEST(Reader, ReadsAStringWithItsLength) {
  const auto data = bytes_of({3, 0, 0, 0, 0, 0, 0, 0, 'a', 0, 'c', 'd'});
  Reader reader(data);
  EXPECT_EQ(reader.string().value(), std::string_view("a\0c", 3));
  EXPECT_EQ(reader.position(), 11u);
}

TEST(Reader, RefusesAStringBeyondTheEndAndStays) {
  std::vector<std::byte> data(8, std::byte{0xff});  // length 2^64 - 1: length + position wraps
  data.push_back(std::byte{'a'});
  Reader reader(data);
  const auto result = reader.string();
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("18446744073709551615 bytes at offset 0"));
  EXPECT_EQ(reader.position(), 0u);
}

TEST(Reader, RefusesAStringAboveItsLimit) {
  const auto data = bytes_of({2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'});
  Reader reader(data);
  EXPECT_FALSE(reader.string(1).ok());
  EXPECT_EQ(reader.position(), 0u);
  EXPECT_EQ(reader.string(2).value(), "ab");
  EXPECT_FALSE(reader.string(2).ok());  // no length any more
}

// The macro that returns the error and assigns the value.
Result<int> sum_of_two(std::span<const std::byte> data) {
  Reader reader(data);
  TERN_ASSIGN(const std::uint8_t a, reader.u8());
  TERN_ASSIGN(const std::uint8_t b, reader.u8());
  TERN_TRY(reader.skip(0));
  return a + b;
}

TEST(Reader, ErrorsTravelThroughTheMacros) {
  EXPECT_EQ(sum_of_two(bytes_of({4, 5})).value(), 9);
  EXPECT_FALSE(sum_of_two(bytes_of({4})).ok());
}

}  // namespace
}  // namespace tern
