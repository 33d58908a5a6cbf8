// Parameters of what surrounds a vendor's matrix product: converting operands, finishing results.
// The operands lie in allocations of their own, so these are addresses and not offsets.
#pragma once

#include "backend/gpu/params/layout.h"

enum TernElement { kTernF32 = 0, kTernF16 = 1, kTernBf16 = 2 };
enum TernActivation {
  kTernNone = 0,
  kTernRelu = 1,
  kTernSilu = 2,
  kTernGeluErf = 3,
  kTernGeluTanh = 4
};

typedef struct {
  tern_u64 from;
  tern_u64 to;
  tern_u64 rows;
  tern_u64 cols;
  tern_u64 from_row_stride;  // elements, as the others
  tern_u64 from_batch_stride;
  tern_u64 to_row_stride;
  tern_u64 to_batch_stride;
  tern_u32 batch;
  tern_u32 from_type;
  tern_u32 to_type;
  tern_u32 reserved;
} TernConvertParams;
static_assert(sizeof(TernConvertParams) == 80, "host and device disagree");
#define TERN_CONVERT_LAYOUT                                                                        \
  TERN_LAYOUT_FIELD(TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernConvertParams), TernConvertParams, to), \
                    TernConvertParams, to_type)

// D = activation(source + beta C + bias); source f32 or none (0), C and bias or none (0).
typedef struct {
  tern_u64 source;
  tern_u64 c;
  tern_u64 d;
  tern_u64 bias;
  tern_u64 rows;
  tern_u64 cols;
  tern_u64 source_row_stride;
  tern_u64 source_batch_stride;
  tern_u64 c_row_stride;
  tern_u64 c_batch_stride;
  tern_u64 d_row_stride;
  tern_u64 d_batch_stride;
  tern_u32 batch;
  tern_u32 c_type;
  tern_u32 d_type;
  tern_u32 bias_type;
  tern_u32 activation;
  float beta;
} TernEpilogueParams;
static_assert(sizeof(TernEpilogueParams) == 120, "host and device disagree");
#define TERN_EPILOGUE_LAYOUT                                                          \
  TERN_LAYOUT_FIELD(                                                                  \
      TERN_LAYOUT_FIELD(TERN_LAYOUT_SEED(TernEpilogueParams), TernEpilogueParams, d), \
      TernEpilogueParams, activation)
