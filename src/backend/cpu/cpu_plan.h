// A plan for the CPU: chosen kernels and where everything lies in the arena.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/kernel_set.h"
#include "backend/cpu/product_choice.h"
#include "program/passes/place.h"

namespace tern::cpu {

// The two memory forms of a quantised value. Offsets are relative to the value's place in the
// arena.
struct QuantForms {
  bool has_packed = false;
  bool has_block = false;
  std::uint64_t packed_row_bytes =
      0;  // upper bound: whether a file uses code 3 is known only once it is loaded
  std::uint64_t block_row_bytes = 0;
  std::uint64_t block_offset = 0;
};

struct CpuPlan : backend::Plan {
  KernelSet kernels;
  PackedTiling tiling = PackedTiling::kBytes;
  std::vector<program::ViewOf> views;                // by ValueId
  std::vector<QuantForms> quant_forms;               // by ValueId
  std::vector<std::vector<ProductKernel>> products;  // by op; empty: no product
  std::vector<std::uint64_t> rope_offsets;  // by rope table: cosines, then sines, in the arena
  std::uint64_t worker_scratch_bytes = 0;   // for each thread
  std::uint64_t partials_offset = 0;        // attention, in the scratch memory after the workers'
  std::uint64_t attention_partial_floats = 0;
  std::uint64_t vendor_offset = 0;  // workspace of vendor products, in the scratch memory
  std::uint64_t vendor_bytes = 0;   // 0: none needs any

  // Whether a product or a lookup reads packed weights.
  [[nodiscard]] bool has_packed() const {
    for (const program::Value& v : program.values)
      if (v.kind == program::ValueKind::kWeight && quant::is_packed(v.weight.format)) return true;
    return false;
  }
  // Rows of an axis that the plan has room for.
  [[nodiscard]] std::int64_t rows_of(program::RowAxis axis) const {
    return axis == program::RowAxis::kRows ? program.bucket.rows : program.output_rows;
  }
};

// One line each about what runs slower than on most machines, for the user.
[[nodiscard]] std::vector<std::string> slow_paths(const backend::DeviceProfile& profile);

// With PlanOptions::exact an answer never depends on how a prompt was cut: the products of packed
// weights are exact integers with one canonical order of additions in every variant and at every
// number of rows, other products have one variant for every number of rows, and own kernels compute
// a row from that row alone. Without it, products of float weights change the variant with the
// number of rows, and the vendor's depend on it.
// Errors: kUsage for a pin whose op or variant does not exist; kUnsupported for attention heads
// wider than any kernel takes.
[[nodiscard]] Result<std::shared_ptr<const backend::Plan>> make_cpu_plan(
    const program::Program& program, const backend::DeviceProfile& profile,
    const backend::PlanOptions& options);

}  // namespace tern::cpu
