// Where cuBLASLt and NVRTC are looked for: CUDA_HOME, the loader's cache, Python's nvidia packages.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tern::cuda {

// Read once, when a backend is made; nothing reads the environment later.
struct LibrarySearch {
  std::string cuda_home;  // empty: not set
  std::vector<std::filesystem::path>
      program_path;  // folders of PATH: python3 leads to its packages
};

// LibrarySearch from CUDA_HOME and PATH.
[[nodiscard]] LibrarySearch library_search(std::string_view cuda_home, std::string_view path);

// The same from this process's environment.
[[nodiscard]] LibrarySearch read_library_search();

// Files and names to try, in order, for a library "cublasLt" of these major versions, newest first.
// A bare name asks the loader.
[[nodiscard]] std::vector<std::string> library_candidates(const LibrarySearch& search,
                                                          std::string_view stem,
                                                          const std::vector<int>& majors);

struct Library {
  void* handle = nullptr;
  std::string path;
};
// The first candidate that loads. Errors: kNotFound, naming the library and where it was looked
// for. What is loaded stays loaded.
[[nodiscard]] Result<Library> load_library(const std::vector<std::string>& candidates,
                                           std::string_view stem);

}  // namespace tern::cuda
