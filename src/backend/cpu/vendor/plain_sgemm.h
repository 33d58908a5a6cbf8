// The f32 product that serves where there is no OpenBLAS.
#pragma once

#include "backend/cpu/vendor/openblas_library.h"

namespace tern::cpu {

// SgemmArgs's formula in portable code on the calling thread. Sums run over k in ascending order,
// in blocks of 256, so an element's bits depend on its row and column alone. Needs 80 KiB of stack.
void plain_sgemm(const SgemmArgs& args) noexcept;

}  // namespace tern::cpu
