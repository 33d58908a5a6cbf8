// The functions behind the table of rms_norm: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/rms_norm/rms_norm.h"

namespace tern::cpu {

void rms_norm_reference(const RmsNormArgs& args, int row_begin, int row_end);
void rms_norm_avx2(const RmsNormArgs& args, int row_begin, int row_end);

}  // namespace tern::cpu
