// NVRTC, NVIDIA's run-time compiler, as a struct of function pointers.
#pragma once

#include <cstddef>
#include <string>

#include "backend/cuda/driver/library_search.h"
#include "base/error.h"

namespace tern::cuda {

struct NvrtcProgram;

#define TERN_CUDA_NVRTC(X)                                                                       \
  X(version, nvrtcVersion, (int* major, int* minor))                                             \
  X(architecture_count, nvrtcGetNumSupportedArchs, (int* count))                                 \
  X(architectures, nvrtcGetSupportedArchs, (int* numbers))                                       \
  X(create, nvrtcCreateProgram,                                                                  \
    (NvrtcProgram * *program, const char* source, const char* name, int header_count,            \
     const char* const* headers, const char* const* header_names))                               \
  X(destroy, nvrtcDestroyProgram, (NvrtcProgram * *program))                                     \
  X(compile, nvrtcCompileProgram,                                                                \
    (NvrtcProgram * program, int option_count, const char* const* options))                      \
  X(cubin_size, nvrtcGetCUBINSize, (NvrtcProgram * program, std::size_t * bytes))                \
  X(cubin, nvrtcGetCUBIN, (NvrtcProgram * program, char* bytes))                                 \
  X(ptx_size, nvrtcGetPTXSize, (NvrtcProgram * program, std::size_t * bytes))                    \
  X(ptx, nvrtcGetPTX, (NvrtcProgram * program, char* bytes))                                     \
  X(log_size, nvrtcGetProgramLogSize, (NvrtcProgram * program, std::size_t * bytes))             \
  X(log, nvrtcGetProgramLog, (NvrtcProgram * program, char* bytes))

// Every member returns a status, 0 is success.
struct NvrtcApi {
#define TERN_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  TERN_CUDA_NVRTC(TERN_MEMBER)
#undef TERN_MEMBER
  std::string path;
};

// Errors: kNotFound without the library; kUnsupported for one that lacks a function.
[[nodiscard]] Result<NvrtcApi> load_nvrtc_api(const LibrarySearch& search);

}  // namespace tern::cuda
