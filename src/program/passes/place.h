// The pass `place`: gives every activation bytes in one arena; values whose lives do not overlap
// share them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "program/program.h"

namespace tern::program {

struct ArenaPlan {
  std::vector<std::uint64_t> offsets;  // by ValueId; only those with bytes have a meaning
  std::uint64_t bytes = 0;
};

// The value that `id` is a view of (itself, unless it is a slice), and the columns before it.
struct ViewOf {
  ValueId root = kNoValue;
  std::int64_t column = 0;
};
[[nodiscard]] std::vector<ViewOf> resolve_views(const Program& p);

// bytes_of(id): what a value takes for the whole bucket (0: it lies elsewhere). Slices take
// nothing: they live in what they are a view of, which lives as long as they do. Outputs live to
// the end. alignment is a power of two.
//
// phase_of_op: ascending numbers; ops of one phase run without a barrier between them (a fused or
// persistent kernel), so a result never lies on bytes that any op of its phase reads. Empty: every
// op is a phase of its own.
[[nodiscard]] ArenaPlan place(const Program& p,
                              const std::function<std::uint64_t(ValueId)>& bytes_of,
                              std::uint64_t alignment,
                              std::span<const std::uint32_t> phase_of_op = {});

}  // namespace tern::program
