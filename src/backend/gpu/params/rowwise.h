// Parameters of kernels that go over rows of floats: quantise, norm, embed, gather, argmax.
#pragma once

#include "backend/gpu/params/layout.h"

typedef struct {
  tern_u64 x;             // bytes from the base of the arena
  tern_u64 x_row_stride;  // floats
  tern_u64 records;       // as in TernGemvParams
  tern_u64 record_bytes;
  tern_u64 scales_offset;
  tern_u32 width;  // inputs; the last group may be short
  tern_u32 axis;
} TernQuantizeParams;
static_assert(sizeof(TernQuantizeParams) == 48, "host and device disagree");
#define TERN_QUANTIZE_LAYOUT                                                                \
  TERN_LAYOUT_FIELD(                                                                        \
      TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernQuantizeParams), TernQuantizeParams, records), \
      TernQuantizeParams, axis)

typedef struct {
  tern_u64 x;
  tern_u64 x_row_stride;
  tern_u64 weight;  // bytes from the base of the weights, f32 [width]
  tern_u64 y;       // may be x
  tern_u64 y_row_stride;
  tern_u32 width;  // of one run
  tern_u32 runs;   // runs in a row (heads); 1: whole rows
  float eps;
  tern_u32 axis;
} TernRmsNormParams;
static_assert(sizeof(TernRmsNormParams) == 56, "host and device disagree");
#define TERN_RMS_NORM_LAYOUT                                                             \
  TERN_LAYOUT_FIELD(                                                                     \
      TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernRmsNormParams), TernRmsNormParams, weight), \
      TernRmsNormParams, eps)

typedef struct {
  tern_u64 table;  // bytes from the base of the weights, layout tiles16
  tern_u64 ids;    // bytes from the base of the batch block, i32 [rows]
  tern_u64 y;      //
  tern_u64 y_row_stride;
  tern_u64 status;      // bytes from the base of the arena: u32, set to 1 by an id out of range
  tern_u32 table_rows;  //
  tern_u32 width;       // a multiple of 128
  tern_u32 axis;
  tern_u32 reserved;
} TernEmbedParams;
static_assert(sizeof(TernEmbedParams) == 56, "host and device disagree");
#define TERN_EMBED_LAYOUT                                                                       \
  TERN_LAYOUT_FIELD(TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernEmbedParams), TernEmbedParams, ids), \
                    TernEmbedParams, width)

typedef struct {
  tern_u64 x;
  tern_u64 x_row_stride;
  tern_u64 rows;  // bytes from the base of the batch block, u32 [output rows]
  tern_u64 y;
  tern_u64 y_row_stride;
  tern_u32 width;
  tern_u32 axis;
} TernGatherParams;
static_assert(sizeof(TernGatherParams) == 48, "host and device disagree");
#define TERN_GATHER_LAYOUT                                                                         \
  TERN_LAYOUT_FIELD(TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernGatherParams), TernGatherParams, rows), \
                    TernGatherParams, width)

// The best of some columns of a row. index -1: nothing but NaN.
typedef struct {
  float value;
  tern_u32 flags;  // kTernArgmax...
  tern_i64 index;
} TernArgmax;
static_assert(sizeof(TernArgmax) == 16, "host and device disagree");
enum { kTernArgmaxNan = 1, kTernArgmaxFinite = 2 };

typedef struct {
  tern_u64 x;
  tern_u64 x_row_stride;
  tern_u64 parts;   // TernArgmax [rows][part_count]
  tern_u64 result;  // TernArgmax [rows]
  tern_u64 width;
  tern_u32 part_count;
  tern_u32 axis;
} TernArgmaxParams;
static_assert(sizeof(TernArgmaxParams) == 48, "host and device disagree");
#define TERN_ARGMAX_LAYOUT                                                             \
  TERN_LAYOUT_FIELD(                                                                   \
      TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernArgmaxParams), TernArgmaxParams, result), \
      TernArgmaxParams, part_count)

typedef struct {
  tern_u64 data;     // bytes from the base of the weights, a multiple of 16
  tern_u64 vectors;  // 16-byte words
  tern_u64 sink;     // bytes from the base of the arena: u32
} TernReadParams;
static_assert(sizeof(TernReadParams) == 24, "host and device disagree");
#define TERN_READ_LAYOUT TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernReadParams), TernReadParams, sink)
