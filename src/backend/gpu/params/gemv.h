// Parameters of products of packed matrices with quantised rows, and the layouts they read.
#pragma once

#include "backend/gpu/params/layout.h"

enum {
  kTernGroup = 128,           // inputs of a scale, weights and activations
  kTernChunkGroups = 4,       // 512 inputs: one chunk of the canonical sum
  kTernTileRows = 16,         // outputs that lie interleaved
  kTernTileGroupBytes = 288,  // 16 rows x 128 weights: 256 B of bits, 32 B of f16 scales
  kTernPlanes = 12,
  kTernPlaneChunkBytes = 768,  // 4 groups x 12 planes x 16 B
  kTernScaleChunkBytes = 32    // 4 f32 scales, then 4 i32 sums
};

// Weights "tiles16": tile after tile of 16 rows (the last one padded with zero scales), in a tile
// chunk after chunk of 4 groups (the last one may have fewer), 288 B a group. In a chunk: bits of
// groups 0 and 1 (32 lanes x 16 B), of groups 2 and 3; then f16 scales: row 0, row 8, row 1, row 9,
// ... of all its groups each. Lane 4r + t holds {row r, row r + 8} of a group, word t: inputs 32t
// .. 32t + 31, bit k is input k. An odd last group takes 8 B a lane.
//
// Quantised rows: a record each. Chunk after chunk of planes: 32 lanes x 4 groups x u32 for planes
// 0 to 7 (lane 4c + t: word t of plane c / 2 + 4 (c % 2)), then 16 x 4 groups x u32 for planes 8 to
// 11 (4 (plane - 8) + t); then per chunk 4 scales (f32) and 4 sums of q (i32). Groups beyond the
// row are zeros.
typedef struct {
  tern_u64 weights;        // bytes from the base of the weights
  tern_u64 records;        // bytes from the base of the arena, as all that follow
  tern_u64 record_bytes;   // from one quantised row to the next
  tern_u64 scales_offset;  // in a record
  tern_u64 y;              //
  tern_u64 y_row_stride;   // floats
  tern_u64 residual;       //
  tern_u64 residual_row_stride;
  tern_u64 bias;     // bytes from the base of the weights
  tern_u32 outputs;  //
  tern_u32 groups;   // inputs / 128
  tern_u32 axis;     // TernRowAxis
  tern_u32 flags;    // kTernGemv...
} TernGemvParams;
static_assert(sizeof(TernGemvParams) == 88, "host and device disagree");

enum { kTernGemvBias = 1, kTernGemvResidual = 2 };

#define TERN_GEMV_LAYOUT                                                                          \
  TERN_LAYOUT_FIELD(                                                                              \
      TERN_LAYOUT_FIELD(                                                                          \
          TERN_LAYOUT_FIELD(TERN_LAYOUT_FIELD(TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernGemvParams), \
                                                                TernGemvParams, records),         \
                                              TernGemvParams, y),                                 \
                            TernGemvParams, bias),                                                \
          TernGemvParams, outputs),                                                               \
      TernGemvParams, flags)
