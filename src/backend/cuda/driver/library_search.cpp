#include "backend/cuda/driver/library_search.h"

#include <dlfcn.h>

#include <algorithm>
#include <system_error>

#include "base/env.h"

namespace tern::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders_in(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// <prefix>/lib/python3.*/site-packages/nvidia/*/lib for the python3 of a folder of PATH.
std::vector<fs::path> package_folders(const fs::path& program_folder) {
  std::error_code error;
  if (!fs::exists(program_folder / "python3", error)) return {};
  std::vector<fs::path> found;
  for (const fs::path& python : folders_in(program_folder.parent_path() / "lib", "python3"))
    for (const fs::path& package : folders_in(python / "site-packages" / "nvidia", ""))
      found.push_back(package / "lib");
  return found;
}

}  // namespace

LibrarySearch library_search(std::string_view cuda_home, std::string_view path) {
  LibrarySearch search;
  if (!cuda_home.empty() && cuda_home.front() == '/') search.cuda_home = cuda_home;
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    // A relative folder would make what is loaded depend on where Tern was started.
    if (!folder.empty() && folder.front() == '/') search.program_path.emplace_back(folder);
    path = colon == std::string_view::npos ? std::string_view() : path.substr(colon + 1);
  }
  return search;
}

LibrarySearch read_library_search() {
  return library_search(environment_variable("CUDA_HOME").value_or(""),
                        environment_variable("PATH").value_or(""));
}

std::vector<std::string> library_candidates(const LibrarySearch& search, std::string_view stem,
                                            const std::vector<int>& majors) {
  std::vector<std::string> result;
  for (const int major : majors) {
    const std::string name = fmt::format("lib{}.so.{}", stem, major);
    if (!search.cuda_home.empty()) {
      result.push_back((fs::path(search.cuda_home) / "lib64" / name).string());
      result.push_back((fs::path(search.cuda_home) / "lib" / name).string());
    }
    result.push_back(name);
  }
  for (const fs::path& folder : search.program_path)
    for (const fs::path& package : package_folders(folder))
      for (const int major : majors) {
        const fs::path file = package / fmt::format("lib{}.so.{}", stem, major);
        std::error_code error;
        if (fs::exists(file, error)) result.push_back(file.string());
      }
  return result;
}

Result<Library> load_library(const std::vector<std::string>& candidates, std::string_view stem) {
  for (const std::string& candidate : candidates)
    if (void* handle = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL))
      return Library{handle, candidate};
  return fail(ErrorCode::kNotFound,
              "[cuda] lib{} was not found; looked in CUDA_HOME, the loader's cache and the nvidia "
              "packages of the python3 in PATH",
              stem);
}

}  // namespace tern::cuda
