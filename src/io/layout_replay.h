// Which blocks the tensors of a GGUF file are made of: type ids that mean several things are
// decided by replaying the offsets of the whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/gguf_header.h"
#include "io/gguf_types.h"

namespace tern::io {

struct ResolvedLayouts {
  std::vector<GgufBlock> blocks;  // one per tensor; each has a format
  std::uint64_t alignment =
      32;  // that the tensors keep: the file's, or 1 for a writer that does not pad
  std::vector<std::string> notes;
};

// Refuses types that Tern does not have, offsets that fit no reading or two, rows that are no whole
// blocks, and tensors that the file ends before. `layout` names the reading of an ambiguous id, or
// is empty.
[[nodiscard]] Result<ResolvedLayouts> resolve_layouts(const GgufHeader& header,
                                                      std::uint64_t file_bytes,
                                                      std::string_view layout);

// How the blocks of 34 bytes under id 42 look when the scale is taken to stand first and last.
struct ScalePlaces {
  std::uint64_t blocks = 0;     // looked at
  std::uint64_t bad_first = 0;  // with code 3, or with a negative, infinite or NaN scale
  std::uint64_t bad_last = 0;
};

// Looks at 2000 blocks, spread evenly over the tensors (at all of them where there are fewer).
[[nodiscard]] ScalePlaces sample_scale_places(std::span<const std::span<const std::byte>> tensors);

}  // namespace tern::io
