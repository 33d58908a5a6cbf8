// What the build put into this library: cubins of its architectures, and the sources of all
// kernels.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tern::cuda {

struct EmbeddedCubin {
  std::string_view source;        // "gemv_q1_g128"
  std::string_view architecture;  // "sm_90"
  std::string_view source_hash;   // of what it was compiled from (gpu::source_hash)
  std::span<const std::byte> bytes;
};
struct EmbeddedSource {
  std::string_view name;  // as it is included: "backend/gpu/params/gemv.h"
  std::string_view text;
};

// Empty in a build without nvcc.
[[nodiscard]] std::span<const EmbeddedCubin> embedded_cubins();
[[nodiscard]] std::span<const EmbeddedSource> embedded_sources();
// Options that the cubins were compiled with, as one text.
[[nodiscard]] std::string_view embedded_flags();

}  // namespace tern::cuda
