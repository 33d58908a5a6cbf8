#include "backend/gpu/pipeline_store/known_bad.h"

namespace tern::gpu {

// None is known. A row: {"sm_90a", "V13.0.88", "gemv_q1_g128", "b1_mma", "wrong sums above 2^23"}.
std::span<const KnownBad> known_bad_kernels() { return {}; }

}  // namespace tern::gpu
