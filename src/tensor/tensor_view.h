// A view of a tensor in memory that somebody else owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace tern {

// Contiguous and row-major. The data may be unaligned when it lies in a file; as<T>() requires
// alignment.
struct TensorView {
  const std::byte* data = nullptr;
  Dtype dtype = Dtype::kF32;
  Shape shape;

  [[nodiscard]] std::int64_t elements() const { return shape.elements(); }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(elements()) * size_of(dtype);
  }
  [[nodiscard]] std::span<const std::byte> span() const { return {data, bytes()}; }

  // The elements; T is the C++ type of dtype (std::uint16_t for the 16-bit floats).
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    TERN_ASSERT(sizeof(T) == size_of(dtype));
    TERN_ASSERT(reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0);
    return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(elements())};
  }
};

// A view of elements that are already typed.
template <class T>
[[nodiscard]] TensorView view_of(std::span<const T> values, Shape shape) {
  TERN_ASSERT(static_cast<std::int64_t>(values.size()) == shape.elements());
  return {reinterpret_cast<const std::byte*>(values.data()), kDtypeOf<T>, shape};
}

}  // namespace tern
