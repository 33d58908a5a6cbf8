// Typed values of a GGUF file: the type is known before the value is used.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/utf8.h"
#include "io/gguf.h"
#include "io/gguf_header.h"

namespace tern::io {
namespace {

constexpr auto kMostSigned = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool is_integer(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kU16:
    case GgufType::kI16:
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kU64:
    case GgufType::kI64:
      return true;
    default:
      return false;
  }
}

// An integer of any type: the bits and whether they are a negative number.
struct Integer {
  std::uint64_t bits;
  bool is_negative;
};
Integer from_signed(std::int64_t value) { return {static_cast<std::uint64_t>(value), value < 0}; }
Integer load_integer(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kI8:
      return from_signed(load<std::int8_t>(at));
    case GgufType::kI16:
      return from_signed(load<std::int16_t>(at));
    case GgufType::kI32:
      return from_signed(load<std::int32_t>(at));
    case GgufType::kI64:
      return from_signed(load<std::int64_t>(at));
    case GgufType::kU16:
      return {load<std::uint16_t>(at), false};
    case GgufType::kU32:
      return {load<std::uint32_t>(at), false};
    case GgufType::kU64:
      return {load<std::uint64_t>(at), false};
    default:
      return {load<std::uint8_t>(at), false};
  }
}
std::string integer_text(Integer value) {
  return value.is_negative ? fmt::format("{}", static_cast<std::int64_t>(value.bits))
                           : fmt::format("{}", value.bits);
}
double load_float(GgufType type, const std::byte* at) {
  return type == GgufType::kF64 ? load<double>(at) : static_cast<double>(load<float>(at));
}

std::string quoted(std::string_view text, std::size_t limit) {
  return '"' + escape_for_message(text, limit) + '"';
}

std::string scalar_text(GgufType type, const std::byte* at) {
  if (is_integer(type)) return integer_text(load_integer(type, at));
  if (type == GgufType::kBool) return load<std::uint8_t>(at) != 0 ? "true" : "false";
  if (type == GgufType::kF32) return fmt::format("{}", load<float>(at));
  return fmt::format("{}", load<double>(at));
}

std::string array_text(const GgufPair& pair, std::size_t limit) {
  std::string text = "[";
  std::uint64_t shown = 0;
  const auto add = [&](const std::string& item) {
    if (text.size() + item.size() + 2 > limit) return false;
    text += (shown == 0 ? "" : ", ") + item;
    ++shown;
    return true;
  };
  if (pair.element_type == GgufType::kString) {
    for (const std::string_view item : GgufStrings(pair.bytes, pair.count)) {
      if (!add(quoted(item, limit))) break;
    }
  } else if (const std::uint64_t size = fixed_size(pair.element_type); size > 0) {
    while (shown < pair.count &&
           add(scalar_text(pair.element_type, pair.bytes.data() + shown * size))) {
    }
  }
  return text + (shown < pair.count ? (shown == 0 ? "...]" : ", ...]") : "]");
}

Error wrong_type(const GgufPair& pair, std::string_view expected) {
  return fail(ErrorCode::kInvalidFile, "key '{}' is {}, expected {}", pair.key, pair.type_text(),
              expected);
}
Error missing(std::string_view key) {
  return fail(ErrorCode::kNotFound, "key '{}' is missing", key);
}
Error out_of_range(const GgufPair& pair, Integer value, std::string_view range) {
  return fail(ErrorCode::kInvalidFile, "key '{}' is {}, expected a number {}", pair.key,
              integer_text(value), range);
}

Result<Integer> integer_of(const GgufPair* pair, std::string_view key, std::string_view expected) {
  if (pair == nullptr) return missing(key);
  if (!is_integer(pair->type)) return wrong_type(*pair, expected);
  return load_integer(pair->type, pair->bytes.data());
}

// The value of `get`, or the fallback where the key is absent.
template <class T, class Get>
Result<T> or_fallback(const GgufFile& file, std::string_view key, T fallback, Get get) {
  if (!file.has(key)) return fallback;
  return get();
}

}  // namespace

std::string_view gguf_type_name(GgufType type) {
  constexpr std::array<std::string_view, 13> kNames = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                       "i32", "f32", "bool", "string", "array",
                                                       "u64", "i64", "f64"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::string_view GgufStrings::Iterator::operator*() const {
  const auto length = load<std::uint64_t>(at_);
  return {reinterpret_cast<const char*>(at_) + 8, static_cast<std::size_t>(length)};
}
GgufStrings::Iterator& GgufStrings::Iterator::operator++() {
  at_ += 8 + load<std::uint64_t>(at_);
  return *this;
}
GgufStrings::Iterator GgufStrings::Iterator::operator++(int) {
  Iterator before = *this;
  ++*this;
  return before;
}
std::vector<std::string_view> GgufStrings::to_vector() const { return {begin(), end()}; }

std::string GgufPair::type_text() const {
  if (type != GgufType::kArray) return std::string(gguf_type_name(type));
  return fmt::format("array of {} {}", count, gguf_type_name(element_type));
}

std::string GgufPair::value_text(std::size_t limit) const {
  if (type == GgufType::kArray) return array_text(*this, limit);
  if (type == GgufType::kString) {
    return quoted({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, limit);
  }
  return scalar_text(type, bytes.data());
}

Result<std::uint64_t> GgufFile::get_u64(std::string_view key) const {
  const GgufPair* pair = find(key);
  const auto value = integer_of(pair, key, "u64");
  if (!value.ok()) return value.error();
  if (value->is_negative) return out_of_range(*pair, *value, "of at least 0");
  return value->bits;
}

Result<std::uint32_t> GgufFile::get_u32(std::string_view key) const {
  const GgufPair* pair = find(key);
  const auto value = integer_of(pair, key, "u32");
  if (!value.ok()) return value.error();
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (value->is_negative || value->bits > kMost) {
    return out_of_range(*pair, *value, "from 0 to 4294967295");
  }
  return static_cast<std::uint32_t>(value->bits);
}

Result<std::int64_t> GgufFile::get_i64(std::string_view key) const {
  const GgufPair* pair = find(key);
  const auto value = integer_of(pair, key, "i64");
  if (!value.ok()) return value.error();
  if (!value->is_negative && value->bits > kMostSigned)
    return out_of_range(*pair, *value, "below 2^63");
  return static_cast<std::int64_t>(value->bits);
}

Result<float> GgufFile::get_f32(std::string_view key) const {
  const GgufPair* pair = find(key);
  if (pair == nullptr) return missing(key);
  if (pair->type != GgufType::kF32 && pair->type != GgufType::kF64) return wrong_type(*pair, "f32");
  return static_cast<float>(load_float(pair->type, pair->bytes.data()));
}

Result<bool> GgufFile::get_bool(std::string_view key) const {
  const GgufPair* pair = find(key);
  if (pair == nullptr) return missing(key);
  if (pair->type != GgufType::kBool) return wrong_type(*pair, "bool");
  return load<std::uint8_t>(pair->bytes.data()) != 0;
}

Result<std::string_view> GgufFile::get_string(std::string_view key) const {
  const GgufPair* pair = find(key);
  if (pair == nullptr) return missing(key);
  if (pair->type != GgufType::kString) return wrong_type(*pair, "string");
  return std::string_view(reinterpret_cast<const char*>(pair->bytes.data()), pair->bytes.size());
}

Result<GgufStrings> GgufFile::get_strings(std::string_view key) const {
  const GgufPair* pair = find(key);
  if (pair == nullptr) return missing(key);
  if (pair->type != GgufType::kArray || pair->element_type != GgufType::kString) {
    return wrong_type(*pair, "array of string");
  }
  return GgufStrings(pair->bytes, static_cast<std::size_t>(pair->count));
}

Result<std::vector<std::int64_t>> GgufFile::get_ints(std::string_view key) const {
  const GgufPair* pair = find(key);
  if (pair == nullptr) return missing(key);
  const GgufType type = pair->element_type;
  if (pair->type != GgufType::kArray || !(is_integer(type) || type == GgufType::kBool)) {
    return wrong_type(*pair, "array of i32");
  }
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(pair->count));
  for (std::uint64_t i = 0; i < pair->count; ++i) {
    const Integer value = load_integer(type, pair->bytes.data() + i * fixed_size(type));
    if (!value.is_negative && value.bits > kMostSigned) {
      return out_of_range(*pair, value, "below 2^63");
    }
    values.push_back(static_cast<std::int64_t>(value.bits));
  }
  return values;
}

Result<std::vector<float>> GgufFile::get_floats(std::string_view key) const {
  const GgufPair* pair = find(key);
  if (pair == nullptr) return missing(key);
  const GgufType type = pair->element_type;
  if (pair->type != GgufType::kArray || !(type == GgufType::kF32 || type == GgufType::kF64)) {
    return wrong_type(*pair, "array of f32");
  }
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(pair->count));
  for (std::uint64_t i = 0; i < pair->count; ++i) {
    values.push_back(
        static_cast<float>(load_float(type, pair->bytes.data() + i * fixed_size(type))));
  }
  return values;
}

Result<std::uint64_t> GgufFile::get_u64(std::string_view key, std::uint64_t fallback) const {
  return or_fallback(*this, key, fallback, [&] { return get_u64(key); });
}
Result<std::uint32_t> GgufFile::get_u32(std::string_view key, std::uint32_t fallback) const {
  return or_fallback(*this, key, fallback, [&] { return get_u32(key); });
}
Result<std::int64_t> GgufFile::get_i64(std::string_view key, std::int64_t fallback) const {
  return or_fallback(*this, key, fallback, [&] { return get_i64(key); });
}
Result<float> GgufFile::get_f32(std::string_view key, float fallback) const {
  return or_fallback(*this, key, fallback, [&] { return get_f32(key); });
}
Result<bool> GgufFile::get_bool(std::string_view key, bool fallback) const {
  return or_fallback(*this, key, fallback, [&] { return get_bool(key); });
}
Result<std::string_view> GgufFile::get_string(std::string_view key,
                                              std::string_view fallback) const {
  return or_fallback(*this, key, fallback, [&] { return get_string(key); });
}

}  // namespace tern::io
