// Kernels that are known to go wrong with one compiler build on one device, as data.
#pragma once

#include <span>
#include <string_view>

namespace tern::gpu {

struct KnownBad {
  std::string_view target;    // the full target; empty: every one
  std::string_view compiler;  // part of the compiler's version; empty: every one
  std::string_view kernel;
  std::string_view variant;  // empty: every one
  std::string_view reason;
};

[[nodiscard]] std::span<const KnownBad> known_bad_kernels();

}  // namespace tern::gpu
