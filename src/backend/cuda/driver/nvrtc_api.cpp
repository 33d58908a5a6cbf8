#include "backend/cuda/driver/nvrtc_api.h"

#include <dlfcn.h>

namespace tern::cuda {

Result<NvrtcApi> load_nvrtc_api(const LibrarySearch& search) {
  TERN_ASSIGN(const Library library,
              load_library(library_candidates(search, "nvrtc", {13, 12}), "nvrtc"));
  NvrtcApi api;
  api.path = library.path;
#define TERN_LOAD(member, symbol, parameters)                                           \
  api.member = reinterpret_cast<int(*) parameters>(::dlsym(library.handle, #symbol));   \
  if (api.member == nullptr)                                                            \
    return fail(ErrorCode::kUnsupported, "[cuda] {} lacks {}", library.path, #symbol);
  TERN_CUDA_NVRTC(TERN_LOAD)
#undef TERN_LOAD
  return api;
}

}  // namespace tern::cuda
