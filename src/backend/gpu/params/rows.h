// What kernels over rows need to know about a step: how many rows are there.
#pragma once

#include "backend/gpu/math/types.h"

// The head of the batch block (program/batch.h, BatchLayout::counts).
typedef struct {
  tern_u32 rows;
  tern_u32 sequences;
  tern_u32 output_rows;
  tern_u32 reserved;
} TernBatchCounts;
static_assert(sizeof(TernBatchCounts) == 16, "host and device disagree");

// The row axis of a launch. kTernAllRows: the grid is the number of rows (tests, benchmarks).
enum TernRowAxis { kTernRows = 0, kTernOutputRows = 1, kTernAllRows = 2 };
