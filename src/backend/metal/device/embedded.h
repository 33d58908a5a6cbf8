// What the build put into the program: compiled kernels, and their sources for systems that cannot
// use those.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tern::metal {

struct EmbeddedSource {
  std::string_view name;  // "backend/gpu/params/gemv.h", as others include it
  std::string_view text;
};

// A Metal library of all kernels; empty where the build had no Metal compiler.
[[nodiscard]] std::span<const std::byte> embedded_library();
[[nodiscard]] std::span<const EmbeddedSource> embedded_sources();

// One text that needs no other file: `main` with every include of the table in its place, once.
// Errors: kNotFound, naming the file and who includes it.
[[nodiscard]] Result<std::string> flatten_source(std::string_view main,
                                                 std::span<const EmbeddedSource> table);

}  // namespace tern::metal
