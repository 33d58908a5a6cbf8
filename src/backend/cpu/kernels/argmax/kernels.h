// The functions behind the table of argmax: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/argmax/argmax.h"

namespace tern::cpu {

ArgmaxPart argmax_reference(const float* row, std::int64_t begin, std::int64_t end);
ArgmaxPart argmax_avx2(const float* row, std::int64_t begin, std::int64_t end);

}  // namespace tern::cpu
