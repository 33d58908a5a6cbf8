// The plain element types of tensors. Weight formats, which pack several weights into blocks, are
// quant::Format.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tern {

enum class Dtype : std::uint8_t {
  kF64,
  kF32,
  kF16,   // IEEE half, in std::uint16_t
  kBf16,  // upper half of an f32, in std::uint16_t
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,  // one byte, 0 or 1
};

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;              // in messages and listings: "f32"
  std::string_view safetensors_name;  // "F32"
  int bytes;
};

inline constexpr std::array kDtypes = {
    DtypeInfo{Dtype::kF64, "f64", "F64", 8},    DtypeInfo{Dtype::kF32, "f32", "F32", 4},
    DtypeInfo{Dtype::kF16, "f16", "F16", 2},    DtypeInfo{Dtype::kBf16, "bf16", "BF16", 2},
    DtypeInfo{Dtype::kI64, "i64", "I64", 8},    DtypeInfo{Dtype::kI32, "i32", "I32", 4},
    DtypeInfo{Dtype::kI16, "i16", "I16", 2},    DtypeInfo{Dtype::kI8, "i8", "I8", 1},
    DtypeInfo{Dtype::kU64, "u64", "U64", 8},    DtypeInfo{Dtype::kU32, "u32", "U32", 4},
    DtypeInfo{Dtype::kU16, "u16", "U16", 2},    DtypeInfo{Dtype::kU8, "u8", "U8", 1},
    DtypeInfo{Dtype::kBool, "bool", "BOOL", 1},
};

[[nodiscard]] constexpr const DtypeInfo& info(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}
[[nodiscard]] constexpr std::size_t size_of(Dtype dtype) {
  return static_cast<std::size_t>(info(dtype).bytes);
}
[[nodiscard]] constexpr std::string_view to_string(Dtype dtype) { return info(dtype).name; }
[[nodiscard]] constexpr std::optional<Dtype> dtype_from_safetensors(std::string_view name) {
  for (const DtypeInfo& row : kDtypes) {
    if (row.safetensors_name == name) return row.dtype;
  }
  return std::nullopt;
}
[[nodiscard]] constexpr bool is_float(Dtype dtype) {
  return dtype == Dtype::kF64 || dtype == Dtype::kF32 || dtype == Dtype::kF16 ||
         dtype == Dtype::kBf16;
}

// The dtype of a C++ type; the 16-bit floats are std::uint16_t in memory and have none.
template <class T>
inline constexpr Dtype kDtypeOf = [] {
  static_assert(sizeof(T) == 0, "no dtype for this type");
  return Dtype::kU8;
}();
template <>
inline constexpr Dtype kDtypeOf<double> = Dtype::kF64;
template <>
inline constexpr Dtype kDtypeOf<float> = Dtype::kF32;
template <>
inline constexpr Dtype kDtypeOf<std::int64_t> = Dtype::kI64;
template <>
inline constexpr Dtype kDtypeOf<std::int32_t> = Dtype::kI32;
template <>
inline constexpr Dtype kDtypeOf<std::int16_t> = Dtype::kI16;
template <>
inline constexpr Dtype kDtypeOf<std::int8_t> = Dtype::kI8;
template <>
inline constexpr Dtype kDtypeOf<std::uint64_t> = Dtype::kU64;
template <>
inline constexpr Dtype kDtypeOf<std::uint32_t> = Dtype::kU32;
template <>
inline constexpr Dtype kDtypeOf<std::uint16_t> = Dtype::kU16;
template <>
inline constexpr Dtype kDtypeOf<std::uint8_t> = Dtype::kU8;

}  // namespace tern
