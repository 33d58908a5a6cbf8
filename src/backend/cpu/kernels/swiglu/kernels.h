// The functions behind the table of swiglu: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/swiglu/swiglu.h"

namespace tern::cpu {

void swiglu_reference(const SwigluArgs& args, int row_begin, int row_end, int column_begin,
                      int column_end);
void swiglu_avx2(const SwigluArgs& args, int row_begin, int row_end, int column_begin,
                 int column_end);

}  // namespace tern::cpu
