// kv_store in portable code: the reference, value by value.
#include "backend/cpu/kernels/kv_store/kernels.h"
#include "reference/kv_cache.h"

namespace tern::cpu {
namespace {

std::uint32_t store_row(const reference::KvPlane& plane, const std::uint32_t* pages, int position,
                        const float* values) {
  std::uint32_t result = 0;
  for (int h = 0; h < plane.kv_heads; ++h) {
    for (int d = 0; d < plane.head_dim; ++d) {
      const float value = values[static_cast<std::int64_t>(h) * plane.head_dim + d];
      switch (reference::kv_store(plane, pages, position, h, d, value)) {
        case reference::KvStored::kAsItIs:
          break;
        case reference::KvStored::kOverflowed:
          result |= kKvStoreOverflow;
          break;
        case reference::KvStored::kNotFinite:
          result |= kKvStoreNotFinite;
          break;
      }
    }
  }
  return result;
}

}  // namespace

std::uint32_t kv_store_reference(const KvStoreArgs& args, int row_begin, int row_end) {
  const KvView& kv = args.kv;
  const reference::KvPlane k{kv.k_base, kv.page_stride_bytes, kv.dtype_k == KvDtype::kF16,
                             kv.kv_heads, kv.head_dim};
  const reference::KvPlane v{kv.v_base, kv.page_stride_bytes, kv.dtype_v == KvDtype::kF16,
                             kv.kv_heads, kv.head_dim};
  std::uint32_t result = 0;
  for (int r = row_begin; r < row_end; ++r) {
    if (args.positions[r] < 0) continue;
    result |= store_row(k, args.pages[r], args.positions[r], args.k + r * args.k_row_stride);
    result |= store_row(v, args.pages[r], args.positions[r], args.v + r * args.v_row_stride);
  }
  return result;
}

}  // namespace tern::cpu
