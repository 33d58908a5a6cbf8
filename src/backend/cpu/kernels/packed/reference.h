// The packed kernels in portable C++ (contract: packed.h). Their records hold no tables; they read
// both tilings.
#pragma once

#include "backend/cpu/kernels/packed/kernel.h"

namespace tern::cpu {

void reference_quantize(const QuantizeArgs& args);
void reference_matmul(const PackedMatmulArgs& args);
void reference_matmul_f32(const PackedMatmulArgs& args);
void reference_decode_row(const PackedView& weights, std::int64_t row, float* out);

}  // namespace tern::cpu
