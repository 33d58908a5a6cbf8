// What every op offers: a name, its operands with their access, a shape rule, and a cost.
#pragma once

#include <cstdint>
#include <string_view>

#include "program/value.h"

namespace tern::program {

struct Program;

enum class Access : std::uint8_t { kRead, kWrite, kUpdate };

// Rows of one step, for costs: how many tokens, how many outputs, and how many positions each token
// attends to.
struct StepShape {
  std::int64_t rows = 1;
  std::int64_t output_rows = 1;
  std::int64_t context = 1;
  [[nodiscard]] std::int64_t count(RowAxis axis) const {
    return axis == RowAxis::kRows ? rows : output_rows;
  }
};

// What one run of an op costs at least: arithmetic, and bytes that have to cross the memory bus.
struct OpCost {
  double flops = 0;
  double weight_bytes = 0;  // read once however many rows there are
  double state_bytes = 0;   // KV cache and recurrent state, read and written
  double row_bytes = 0;     // activations, read and written
};

}  // namespace tern::program
