// What the packed kernels are called with: plain structs, so that files of one instruction set
// include nothing else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tern::cpu {

// What the codes of a packed matrix can be; decides how many bits the packed form holds and which
// sums are made.
enum class PackedKind : std::uint8_t {
  kBinary,   // -1, +1
  kTernary,  // -1, 0, +1
  kCodes,    // -1, 0, +1, +2: two-bit codes of a file that uses code 3
};

// How 32 rows are interleaved. One tiling per machine, so there is one copy of the weights.
enum class PackedTiling : std::uint8_t {
  kBytes,  // 8 weights of a row in a byte, 32 bytes beside each other: tables of 16 bytes
  kWords,  // 16 weights (9 ternary ones) of a row in a 16-bit word, 32 words: tables of 32 words
};

// Rows in a block. The last block of a matrix is padded with rows of scale 0.
inline constexpr int kPackedBlockRows = 32;
// Bytes that one call of a product may use, aligned to 64.
inline constexpr std::size_t kPackedScratchBytes = std::size_t{128} * 1024;

// A packed matrix: row blocks one after the other, each holding its groups in ascending order, each
// group its 32 scales (IEEE half) and then its codes. `data` is aligned to 64.
struct PackedView {
  const std::byte* data;
  std::int64_t rows;
  std::int64_t inputs;           // a multiple of group
  std::int64_t groups;           // per row: inputs / group
  std::int64_t group_bytes;      // one group of 32 rows, scales included; a multiple of 64
  std::int64_t row_block_bytes;  // groups * group_bytes
  std::int32_t group;            // 64 or 128 weights per scale
  PackedKind kind;
  PackedTiling tiling;
};

// Quantised activation rows, one record each, its parts at the offsets below (activation_layout of
// packed.h places them). `data` is aligned to 64.
struct RecordsView {
  std::byte* data;
  std::int64_t record_bytes;         // from one row to the next; a multiple of 64
  std::int64_t inputs;               // per row
  std::int64_t scales_offset;        // float a[ceil(inputs / 128)]
  std::int64_t sums_offset;          // int32 sum of q per 64 inputs
  std::int64_t q_offset;             // int16 q[inputs], zeros up to a multiple of 128
  std::int64_t subset_table_offset;  // -1: not there. Sums of subsets, for kBinary, kCodes, kBytes
  // -1: not there. Sums of three-valued triples, for kTernary in kWords
  std::int64_t ternary_table_offset;
};

// x: rows of inputs floats, x_stride floats apart. Writes the records row_begin..row_end-1.
struct QuantizeArgs {
  const float* x;
  std::int64_t x_stride;
  std::int64_t row_begin;
  std::int64_t row_end;
  RecordsView records;
};

// y[r, n] = (residual[r, n] +) sum over k of w(n, k) * x(r, k), for r in [0, rows) and the outputs
// of the row blocks [block_begin, block_end). x is `records` (12-bit integers) or `x` (floats); the
// other is unused.
struct PackedMatmulArgs {
  PackedView weights;
  RecordsView records;
  const float* x;
  std::int64_t x_stride;
  std::int64_t rows;
  float* y;
  std::int64_t y_stride;
  const float* residual;  // nullptr: none
  std::int64_t residual_stride;
  std::int64_t block_begin;
  std::int64_t block_end;
  std::byte* scratch;  // kPackedScratchBytes, aligned to 64
};

using QuantizeFn = void (*)(const QuantizeArgs& args);
using PackedMatmulFn = void (*)(const PackedMatmulArgs& args);
// Decodes one row exactly: out[k] = code * scale in f32, k in [0, inputs).
using PackedDecodeRowFn = void (*)(const PackedView& weights, std::int64_t row, float* out);

}  // namespace tern::cpu
