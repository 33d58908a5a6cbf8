// A hash of a parameter block's layout, equal on host and device when they agree about every field.
#pragma once

#include "backend/gpu/math/types.h"

// One step of the hash; a field enters with its offset and its size.
#define TERN_LAYOUT_FIELD(hash, type, field)                                             \
  (((hash)*16777619U) ^ (static_cast<tern_u32>(__builtin_offsetof(type, field)) * 257U + \
                         static_cast<tern_u32>(sizeof(((type*)nullptr)->field))))
#define TERN_LAYOUT_SEED(type) (2166136261U ^ static_cast<tern_u32>(sizeof(type)))

// What a device source exports beside an entry point: size and layout of its parameter block.
#define TERN_EXPORT_LAYOUT(entry, type, layout) \
  extern "C" __device__ const tern_u64 entry##_params_mark[2] = {sizeof(type), layout};
