// Code that lies in the executable: a table that is checked against the running sources, not
// believed.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "backend/gpu/pipeline_store/compiler.h"

namespace tern::gpu {

enum class ImageKind { kCubin, kPtx, kMetallib };

// One image: a cubin of one kernel, or a library of one feature level.
struct EmbeddedImage {
  std::string_view name;  // "gemv_q1_g128.sm_90a", "base"
  ImageKind kind = ImageKind::kCubin;
  std::string_view target;  // "sm_90a"; for PTX the virtual target "compute_75"
  std::span<const std::byte> bytes;
};

// One kernel in one image. Written by the build from what it compiled.
struct EmbeddedKernel {
  std::string_view stem;
  std::string_view variant;
  std::size_t image = 0;  // index
  std::string_view source_hash;
  std::string_view flags;  // canonical texts
  std::string_view constants;
};

struct EmbeddedTable {
  std::span<const EmbeddedImage> images;
  std::span<const EmbeddedKernel> kernels;
};

}  // namespace tern::gpu
