// The functions behind the table of rope: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/rope/rope.h"

namespace tern::cpu {

void rope_reference(const RopeArgs& args, int row_begin, int row_end);
void rope_avx2(const RopeArgs& args, int row_begin, int row_end);

}  // namespace tern::cpu
