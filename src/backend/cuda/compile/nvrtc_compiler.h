// The run-time tier on CUDA: NVRTC, loaded on demand.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/gpu/pipeline_store/compiler.h"
#include "base/error.h"

namespace tern::cuda {

// The functions of NVRTC that Tern uses, by their own names; results are nvrtcResult (0: success),
// a program is a pointer. Tests fill it with a fake.
struct NvrtcFunctions {
  int (*version)(int* major, int* minor) = nullptr;
  int (*supported_archs_count)(int* count) = nullptr;
  int (*supported_archs)(int* archs) = nullptr;
  int (*create_program)(void** program, const char* source, const char* name, int headers,
                        const char* const* header_texts, const char* const* header_names) = nullptr;
  int (*compile_program)(void* program, int options, const char* const* option_texts) = nullptr;
  int (*cubin_size)(void* program, std::size_t* size) = nullptr;
  int (*cubin)(void* program, char* to) = nullptr;
  int (*ptx_size)(void* program, std::size_t* size) = nullptr;
  int (*ptx)(void* program, char* to) = nullptr;
  int (*log_size)(void* program, std::size_t* size) = nullptr;
  int (*log)(void* program, char* to) = nullptr;
  int (*destroy_program)(void** program) = nullptr;
  const char* (*error_string)(int result) = nullptr;
};

struct NvrtcLibrary {
  NvrtcFunctions functions;
  std::string identity;  // build id of the library's file, or SHA-256 of its content
  std::string location;
};

struct NvrtcSearch {
  std::optional<std::string> cuda_home;      // CUDA_HOME
  std::vector<std::string> python_packages;  // folders that hold nvidia/
};
[[nodiscard]] NvrtcSearch read_nvrtc_search();

// Files that may be NVRTC, in the order in which they are tried: CUDA_HOME, the loader's cache
// (names without a folder), `nvidia` Python packages.
[[nodiscard]] std::vector<std::string> nvrtc_candidates(const NvrtcSearch& search);
// Opens the first that works. Errors: kNotFound, kUnsupported (a function is missing).
[[nodiscard]] Result<NvrtcLibrary> load_nvrtc(const NvrtcSearch& search);

// `open` is called once, on first use. `linker` (may be empty) makes a cubin where NVRTC does not
// know the device: then its newest virtual target is compiled and linked.
[[nodiscard]] std::shared_ptr<gpu::Compiler> make_nvrtc_compiler(
    std::function<Result<NvrtcLibrary>()> open, std::shared_ptr<gpu::PtxLinker> linker = nullptr);

}  // namespace tern::cuda
