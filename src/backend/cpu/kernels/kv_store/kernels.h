// The functions behind the table of kv_store: one group per instruction set.
#pragma once

#include "backend/cpu/kernels/kv_store/kv_store.h"

namespace tern::cpu {

std::uint32_t kv_store_reference(const KvStoreArgs& args, int row_begin, int row_end);
std::uint32_t kv_store_avx2(const KvStoreArgs& args, int row_begin, int row_end);

}  // namespace tern::cpu
