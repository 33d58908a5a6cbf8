// Typed values: numbers of any integer type, errors that name key, found and expected, and how they
// are printed.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "io/gguf.h"
#include "io/gguf_writer.h"

namespace tern::io {
namespace {

using Bytes = std::vector<std::byte>;

// The values of every type.
Bytes typed_file() {
  GgufWriter writer;
  writer.add_u8("u8", 200);
  writer.add_i32("minus", -1);
  writer.add_i64("i64", 5);
  writer.add_u64("most", ~std::uint64_t{0});
  writer.add_u32("u32", 4000000000U);
  writer.add_f32("f32", 0.5F);
  writer.add_f64("f64", 0.25);
  writer.add_bool("yes", true);
  writer.add_string("text", "a\nb");
  writer.add_strings("words", std::vector<std::string>{"one", "", "three"});
  writer.add_i32s("ints", std::vector<std::int32_t>{11, -11, 0});
  writer.add_f32s("floats", std::vector<float>{1.5F, -2.0F});
  const std::array<bool, 2> bools = {true, false};
  writer.add_bools("bools", bools);
  return writer.to_bytes().value();
}

TEST(GgufValues, IntegersOfAnyTypeAreNumbers) {
  const Bytes bytes = typed_file();
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->get_u64("u8"), 200U);
  EXPECT_EQ(*file->get_u64("i64"), 5U);
  EXPECT_EQ(*file->get_u64("most"), 18446744073709551615U);
  EXPECT_EQ(*file->get_u32("u32"), 4000000000U);
  EXPECT_EQ(*file->get_i64("minus"), -1);
  EXPECT_EQ(*file->get_f32("f32"), 0.5F);
  EXPECT_EQ(*file->get_f32("f64"), 0.25F);
  EXPECT_TRUE(*file->get_bool("yes"));
  EXPECT_EQ(*file->get_string("text"), "a\nb");
  EXPECT_EQ(*file->get_ints("ints"), (std::vector<std::int64_t>{11, -11, 0}));
  EXPECT_EQ(*file->get_ints("bools"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(*file->get_floats("floats"), (std::vector<float>{1.5F, -2.0F}));
  const auto words = file->get_strings("words");
  ASSERT_TRUE(words.ok());
  EXPECT_EQ(words->size(), 3U);
  EXPECT_EQ(words->to_vector(), (std::vector<std::string_view>{"one", "", "three"}));
}

TEST(GgufValues, ErrorsNameKeyFoundAndExpected) {
  const Bytes bytes = typed_file();
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->get_u64("none").error().message(), "key 'none' is missing");
  EXPECT_EQ(file->get_u64("none").error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(file->get_u64("text").error().message(), "key 'text' is string, expected u64");
  EXPECT_EQ(file->get_u32("f32").error().message(), "key 'f32' is f32, expected u32");
  EXPECT_EQ(file->get_f32("u8").error().message(), "key 'u8' is u8, expected f32");
  EXPECT_EQ(file->get_bool("u8").error().message(), "key 'u8' is u8, expected bool");
  EXPECT_EQ(file->get_string("words").error().message(),
            "key 'words' is array of 3 string, expected string");
  EXPECT_EQ(file->get_strings("ints").error().message(),
            "key 'ints' is array of 3 i32, expected array of string");
  EXPECT_EQ(file->get_ints("floats").error().message(),
            "key 'floats' is array of 2 f32, expected array of i32");
  EXPECT_EQ(file->get_floats("f32").error().message(), "key 'f32' is f32, expected array of f32");
  EXPECT_EQ(file->get_u64("minus").error().message(),
            "key 'minus' is -1, expected a number of at least 0");
  EXPECT_EQ(file->get_u32("most").error().message(),
            "key 'most' is 18446744073709551615, expected a number from 0 to 4294967295");
  EXPECT_EQ(file->get_i64("most").error().message(),
            "key 'most' is 18446744073709551615, expected a number below 2^63");
}

TEST(GgufValues, FallbacksAreForAbsentKeysOnly) {
  const Bytes bytes = typed_file();
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->get_u64("none", 7), 7U);
  EXPECT_EQ(*file->get_u64("u8", 7), 200U);
  EXPECT_FALSE(file->get_u64("text", 7).ok());
  EXPECT_EQ(*file->get_string("none", "x"), "x");
  EXPECT_EQ(*file->get_f32("none", 1.0F), 1.0F);
  EXPECT_FALSE(*file->get_bool("none", false));
}

TEST(GgufValues, ArePrintedForPeople) {
  const Bytes bytes = typed_file();
  const auto file = GgufFile::read(bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->find("u8")->value_text(), "200");
  EXPECT_EQ(file->find("minus")->value_text(), "-1");
  EXPECT_EQ(file->find("yes")->value_text(), "true");
  EXPECT_EQ(file->find("text")->value_text(), "\"a\\nb\"");
  EXPECT_EQ(file->find("text")->value_text(1), "\"a...\"");
  EXPECT_EQ(file->find("words")->value_text(), R"(["one", "", "three"])");
  EXPECT_EQ(file->find("ints")->value_text(), "[11, -11, 0]");
  EXPECT_EQ(file->find("ints")->value_text(7), "[11, ...]");
  EXPECT_EQ(file->find("floats")->value_text(), "[1.5, -2]");
  EXPECT_EQ(file->find("words")->type_text(), "array of 3 string");
}

}  // namespace
}  // namespace tern::io
