// Passes: pure functions from program to program.
#pragma once

#include <cstdint>
#include <functional>

#include "program/program.h"

namespace tern::program {

enum class Activations : std::uint8_t {
  kI12,  // 12-bit integers per 128 inputs for packed and block formats
  kF32,  // the reference: floats times decoded weights
};

// Says that a product is to keep its float operand although its weight is packed: a backend answers
// so where it would rather multiply floats (a vendor's product in prefill). Empty: none.
using KeepsFloats = std::function<bool(const Program&, const Linear&)>;

// Gives every product by a packed or block weight a quantised operand: one Quantize per distinct
// value, shared by all products that read it. With kF32 the program is returned as it is.
[[nodiscard]] Program quantize(const Program& p, Activations activations,
                               const KeepsFloats& keeps_floats = {});

// Replaces patterns by fused ops: linear + add -> linear with residual. An intermediate with a
// second reader (or that is an output) is never fused away.
[[nodiscard]] Program fuse(const Program& p);

// Both, in the order that they are meant to run.
[[nodiscard]] Program run_passes(const Program& p, Activations activations,
                                 const KeepsFloats& keeps_floats = {});

}  // namespace tern::program
