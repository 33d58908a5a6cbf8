// The packed kernels of x86 (contract: packed.h). Defined in files that are compiled for one
// instruction set.
#pragma once

#include "backend/cpu/kernels/packed/kernel.h"

namespace tern::cpu {

// AVX2, FMA, F16C; tiling kBytes.
void avx2_quantize(const QuantizeArgs& args);
void avx2_matmul(const PackedMatmulArgs& args);
void avx2_matmul_f32(const PackedMatmulArgs& args);
// One row without its tables: q, scales and sums.
void avx2_quantize_integers(const float* x, const RecordsView& records, std::byte* record);

// AVX-512 F, BW, DQ, VL, VNNI; tiling kWords.
void avx512_quantize(const QuantizeArgs& args);
void avx512_matmul(const PackedMatmulArgs& args);
void avx512_matmul_f32(const PackedMatmulArgs& args);

}  // namespace tern::cpu
