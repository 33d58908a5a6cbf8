// A plan for a Metal device: which kernel runs each op, and where everything lies in the arena.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/metal/kernels/kernels.h"
#include "program/passes/place.h"

namespace tern::metal {

struct MetalPlan : backend::Plan {
  std::vector<program::ViewOf> views;  // by ValueId
  program::BatchLayout block;          // of the device's copy of the batch block
  std::uint64_t status_offset = 0;     // in the arena: u32, set by kernels that met a bad index

  [[nodiscard]] std::int64_t rows_of(program::RowAxis axis) const {
    return axis == program::RowAxis::kRows ? program.bucket.rows : program.output_rows;
  }
};

// Pure. Errors: kUnsupported naming the op, its place and its shapes when no Metal kernel runs it;
// kUsage for a pin that names no variant.
[[nodiscard]] Result<std::shared_ptr<const backend::Plan>> make_metal_plan(
    const program::Program& program, const backend::DeviceProfile& profile,
    const backend::PlanOptions& options);

// The launches of an op, with offsets into the weights, the arena and the block. place_of(id):
// where a weight lies.
using WeightPlaceFn = std::function<WeightPlace(program::WeightId)>;
[[nodiscard]] std::vector<Launch> bind_op(const MetalPlan& plan, const program::Op& op,
                                          const WeightPlaceFn& place_of);

// "apple9" -> 9; 0 for what is no Apple GPU family.
[[nodiscard]] int family_number(std::string_view architecture);

// Bytes and name of one weight's layout: a pure function of its declaration. An empty name: there
// is no layout, because no kernel reads it.
struct LayoutEstimate {
  std::uint64_t bytes = 0;  // a multiple of 256
  std::string name;         // "split q1_g128", "vector f32"
};
[[nodiscard]] LayoutEstimate estimate_layout(const program::WeightDecl& decl);

}  // namespace tern::metal
