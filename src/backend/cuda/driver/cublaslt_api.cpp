#include "backend/cuda/driver/cublaslt_api.h"

#include <dlfcn.h>

namespace tern::cuda {

const char* lt_status_name(int status) {
  switch (status) {
    case 0:
      return "SUCCESS";
    case 1:
      return "NOT_INITIALIZED";
    case 3:
      return "ALLOC_FAILED";
    case 7:
      return "INVALID_VALUE";
    case 8:
      return "ARCH_MISMATCH";
    case 11:
      return "MAPPING_ERROR";
    case 13:
      return "EXECUTION_FAILED";
    case 14:
      return "INTERNAL_ERROR";
    case 15:
      return "NOT_SUPPORTED";
    default:
      return "an unknown status";
  }
}

Result<CublasLtApi> load_cublaslt_api(const LibrarySearch& search) {
  TERN_ASSIGN(const Library library,
              load_library(library_candidates(search, "cublasLt", {13, 12}), "cublasLt"));
  CublasLtApi api;
  api.path = library.path;
#define TERN_LOAD(member, symbol, parameters)                                         \
  api.member = reinterpret_cast<int(*) parameters>(::dlsym(library.handle, #symbol)); \
  if (api.member == nullptr)                                                          \
    return fail(ErrorCode::kUnsupported, "[cuda] {} lacks {}", library.path, #symbol);
  TERN_CUDA_CUBLASLT(TERN_LOAD)
#undef TERN_LOAD
  api.version = reinterpret_cast<std::size_t (*)()>(::dlsym(library.handle, "cublasLtGetVersion"));
  if (api.version == nullptr)
    return fail(ErrorCode::kUnsupported, "[cuda] {} lacks cublasLtGetVersion", library.path);
  return api;
}

}  // namespace tern::cuda
