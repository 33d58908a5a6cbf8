// Products of packed 1-bit and ternary weights with 12-bit activations on the CPU: layouts, repack,
// variants.
//
// How a caller works:
// clang-format off
//   const PackedVariant& v = select_packed_variant(features);                  // once per engine
//   PackedLayout layout = packed_layout(format, rows, inputs, has_code3, v.tiling);
//   repack(layout, source, source_row, count, destination, row);               // in parallel, any ranges of rows
//   ActivationLayout a = activation_layout(inputs, v.tiling, needs(layout) | needs(other));
//   v.quantize({...});                                                         // in parallel, ranges of rows
//   v.matmul({...});                                                           // in parallel, ranges of row blocks
// clang-format on
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "backend/cpu/kernels/packed/kernel.h"
#include "base/cpu_features.h"
#include "quant/format.h"

namespace tern::cpu {

// ---- weights

// The resident form of one matrix (or of row-joined ones): a pure function of what is named in it.
struct PackedLayout {
  quant::Format source;
  PackedKind kind;
  PackedTiling tiling;
  int group;  // weights per scale in the packed form: 64 or 128 (a block of 256 becomes two of 128)
  std::int64_t rows;    // any
  std::int64_t inputs;  // a multiple of the source's group

  [[nodiscard]] std::int64_t groups() const { return inputs / group; }
  [[nodiscard]] std::int64_t row_blocks() const;
  [[nodiscard]] std::size_t group_bytes() const;  // of 32 rows
  [[nodiscard]] std::size_t bytes() const;        // of the whole matrix; allocate aligned to 64
  [[nodiscard]] PackedView view(const std::byte* data) const;
  bool operator==(const PackedLayout&) const = default;
};

// format is packed (quant::is_packed) and inputs a multiple of its group. has_code3: the codes of a
// t2 format contain a 3 (scan_packed says so); ignored for other formats. Joined parts share one
// layout: code 3 in one is code 3 in all.
[[nodiscard]] PackedLayout packed_layout(quant::Format format, std::int64_t rows,
                                         std::int64_t inputs, bool has_code3, PackedTiling tiling);

// Rows as they lie in a file: row r at data + r * row_bytes, any alignment.
struct PackedSource {
  quant::Format format;
  std::int64_t inputs;
  const std::byte* data;
  std::int64_t row_bytes;
};

// What a pass over rows of a source found.
struct PackedScan {
  bool has_code3 = false;
  // The first block (counted from row 0 of the source, row * blocks per row + block) whose scale is
  // NaN or Inf; -1: none.
  std::int64_t bad_block = -1;
  bool bad_is_nan = false;

  [[nodiscard]] PackedScan merged(const PackedScan& other) const;
};

// Reads rows [row_begin, row_begin + row_count). Needed before packed_layout for the t2 formats;
// for the others repack finds the same on the way. One pass at memory speed; any ranges of rows in
// parallel.
[[nodiscard]] PackedScan scan_packed(const PackedSource& source, std::int64_t row_begin,
                                     std::int64_t row_count);

// Repacks source rows [row_begin, row_begin + row_count) into rows [destination_row, ...) of the
// matrix at `destination` (layout.bytes(), aligned to 64; need not be cleared). Writes nothing but
// those rows, and the padding rows after the last row of the matrix, so that calls for different
// rows may run at the same time; ranges that start at multiples of 32 destination rows are fastest.
// With kTernary a code 3 is reported and repacked as garbage.
PackedScan repack(const PackedLayout& layout, const PackedSource& source, std::int64_t row_begin,
                  std::int64_t row_count, std::byte* destination, std::int64_t destination_row);

// ---- activations

// Which tables the records must hold; the union over all matrices that read the same activations.
struct ActivationNeeds {
  bool subset_tables = false;
  bool ternary_tables = false;

  [[nodiscard]] ActivationNeeds operator|(const ActivationNeeds& other) const {
    return {subset_tables || other.subset_tables, ternary_tables || other.ternary_tables};
  }
  bool operator==(const ActivationNeeds&) const = default;
};
[[nodiscard]] ActivationNeeds needs(const PackedLayout& layout);

// Where the parts of one record (one quantised row) lie: scales, sums, integers, tables. About 15
// bytes per input for one kind of table (24 for the ternary tables of kWords).
struct ActivationLayout {
  std::int64_t inputs;
  std::int64_t record_bytes;  // a multiple of 64; rows * record_bytes, aligned to 64, hold the
                              // records of rows
  std::int64_t scales_offset;
  std::int64_t sums_offset;
  std::int64_t q_offset;
  std::int64_t subset_table_offset;
  std::int64_t ternary_table_offset;

  [[nodiscard]] RecordsView view(std::byte* records) const;
  bool operator==(const ActivationLayout&) const = default;
};
// inputs is a multiple of 64.
[[nodiscard]] ActivationLayout activation_layout(std::int64_t inputs, PackedTiling tiling,
                                                 ActivationNeeds needs);

// ---- variants

// The kernels of one instruction set. All of them keep this contract:
//
// clang-format off
// quantize    kernels.md 1.2, bit for bit, and the tables of the layout. Rows may be split over threads.
// matmul      kernels.md 1.3 on the records: exact integers, then the canonical order of additions, then the
//             residual with one rounding. Every variant, every number of rows and every split into row blocks
//             gives the same bits.
// matmul_f32  The same product with float activations (class F: another variant may give other bits, but a
//             row does not depend on the other rows, nor on the split).
// decode_row  The exact values of one row of the packed matrix.
// clang-format on
//
// A call writes y of its own rows and row blocks only, and its scratch; everything else is only
// read and may be shared between threads. y may be `residual` exactly (same address and stride). No
// rows, no blocks or no inputs: y of the range is the residual or 0.
struct PackedVariant {
  std::string_view name;
  CpuFeatures needs;
  PackedTiling tiling;  // of the layouts it reads fast; reference reads both
  QuantizeFn quantize;
  PackedMatmulFn matmul;
  PackedMatmulFn matmul_f32;
  PackedDecodeRowFn decode_row;
};

// All variants that were compiled in, best first; the last one runs everywhere.
[[nodiscard]] std::span<const PackedVariant> packed_variants();
// The first variant whose instructions are there.
[[nodiscard]] const PackedVariant& select_packed_variant(CpuFeatures features);

// How many row blocks to hand to a thread at a time: many for one row of activations would only add
// overhead, and a call must be large enough to reuse its tables. Ranges may have any size; this one
// is a good one.
[[nodiscard]] std::int64_t packed_task_blocks(const PackedLayout& layout, std::int64_t rows);

}  // namespace tern::cpu
