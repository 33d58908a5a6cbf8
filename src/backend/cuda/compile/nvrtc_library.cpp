// Finding and opening NVRTC, and naming its build.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "backend/cuda/compile/nvrtc_compiler.h"
#include "base/env.h"
#include "base/hash.h"

namespace tern::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

// nvidia/<package>/lib/libnvrtc.so.N below a folder of Python packages.
void add_python_packages(const std::string& folder, std::vector<std::string>& candidates) {
  std::error_code error;
  std::vector<std::string> found;
  for (fs::directory_iterator at(fs::path(folder) / "nvidia", error), end; !error && at != end;
       at.increment(error)) {
    for (const char* name : kNames) {
      const fs::path path = at->path() / "lib" / name;
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) found.push_back(path.string());
    }
  }
  std::sort(found.begin(), found.end());
  candidates.insert(candidates.end(), found.begin(), found.end());
}

struct LoadedObject {
  const void* symbol = nullptr;
  std::string build_id;  // hexadecimal
  std::string path;
};

// The GNU build id lies in a note of the loaded image, so no file is read.
int look_at_object(struct dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& wanted = *static_cast<LoadedObject*>(data);
  const auto address = reinterpret_cast<ElfW(Addr)>(wanted.symbol);
  const std::span<const ElfW(Phdr)> headers(info->dlpi_phdr, info->dlpi_phnum);
  const bool is_it = std::any_of(headers.begin(), headers.end(), [&](const ElfW(Phdr) & header) {
    const ElfW(Addr) start = info->dlpi_addr + header.p_vaddr;
    return header.p_type == PT_LOAD && address >= start && address < start + header.p_memsz;
  });
  if (!is_it) return 0;
  wanted.path = info->dlpi_name;
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* end = at + header.p_memsz;
    while (static_cast<std::size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const std::size_t name_bytes = (note.n_namesz + 3u) & ~3u;
      const std::size_t text_bytes = (note.n_descsz + 3u) & ~3u;
      if (static_cast<std::size_t>(end - at) < sizeof note + name_bytes + text_bytes) break;
      const char* name = at + sizeof note;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        for (std::size_t i = 0; i < note.n_descsz; ++i) {
          wanted.build_id += fmt::format(
              "{:02x}", static_cast<unsigned>(static_cast<unsigned char>(name[name_bytes + i])));
        }
      }
      at += sizeof note + name_bytes + text_bytes;
    }
  }
  return 1;
}

template <class Function>
bool take(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

const char* take_all(void* library, NvrtcFunctions& to) {
  if (!take(library, "nvrtcVersion", to.version)) return "nvrtcVersion";
  if (!take(library, "nvrtcGetNumSupportedArchs", to.supported_archs_count)) {
    return "nvrtcGetNumSupportedArchs";
  }
  if (!take(library, "nvrtcGetSupportedArchs", to.supported_archs)) return "nvrtcGetSupportedArchs";
  if (!take(library, "nvrtcCreateProgram", to.create_program)) return "nvrtcCreateProgram";
  if (!take(library, "nvrtcCompileProgram", to.compile_program)) return "nvrtcCompileProgram";
  if (!take(library, "nvrtcGetCUBINSize", to.cubin_size)) return "nvrtcGetCUBINSize";
  if (!take(library, "nvrtcGetCUBIN", to.cubin)) return "nvrtcGetCUBIN";
  if (!take(library, "nvrtcGetPTXSize", to.ptx_size)) return "nvrtcGetPTXSize";
  if (!take(library, "nvrtcGetPTX", to.ptx)) return "nvrtcGetPTX";
  if (!take(library, "nvrtcGetProgramLogSize", to.log_size)) return "nvrtcGetProgramLogSize";
  if (!take(library, "nvrtcGetProgramLog", to.log)) return "nvrtcGetProgramLog";
  if (!take(library, "nvrtcDestroyProgram", to.destroy_program)) return "nvrtcDestroyProgram";
  if (!take(library, "nvrtcGetErrorString", to.error_string)) return "nvrtcGetErrorString";
  return nullptr;
}

Result<NvrtcLibrary> open_library(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return fail(ErrorCode::kNotFound, "{}", why != nullptr ? why : file.c_str());
  }
  NvrtcLibrary opened;
  if (const char* missing = take_all(library, opened.functions)) {
    ::dlclose(library);
    return fail(ErrorCode::kUnsupported, "{} has no function {}; CUDA 12 or newer is expected",
                file, missing);
  }
  LoadedObject object;
  object.symbol = reinterpret_cast<const void*>(opened.functions.version);
  ::dl_iterate_phdr(look_at_object, &object);
  opened.location = object.path.empty() ? file : object.path;
  int major = 0;
  int minor = 0;
  opened.functions.version(&major, &minor);
  std::string build = "build " + object.build_id;
  if (object.build_id.empty()) {
    TERN_ASSIGN(const std::string hash, sha256_hex_of_file(opened.location));
    build = "sha256 " + hash;
  }
  opened.identity = fmt::format("NVRTC {}.{}, {}", major, minor, build);
  return opened;  // stays loaded for the rest of the process
}

}  // namespace

NvrtcSearch read_nvrtc_search() {
  NvrtcSearch search;
  search.cuda_home = environment_variable("CUDA_HOME");
  // python3 in PATH leads to its packages: <prefix>/bin -> <prefix>/lib/python3.N/site-packages.
  std::string rest = environment_variable("PATH").value_or("");
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    const fs::path folder = rest.substr(0, end);
    rest = end == std::string::npos ? std::string() : rest.substr(end + 1);
    std::error_code error;
    if (!folder.is_absolute() || !fs::exists(folder / "python3", error)) continue;
    const fs::path prefix = folder.parent_path() / "lib";
    for (fs::directory_iterator at(prefix, error), last; !error && at != last;
         at.increment(error)) {
      if (!at->path().filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        search.python_packages.push_back((at->path() / packages).string());
      }
    }
  }
  return search;
}

std::vector<std::string> nvrtc_candidates(const NvrtcSearch& search) {
  std::vector<std::string> candidates;
  if (search.cuda_home && search.cuda_home->starts_with('/')) {
    for (const char* folder : {"lib64", "lib"}) {
      for (const char* name : kNames) {
        const fs::path path = fs::path(*search.cuda_home) / folder / name;
        std::error_code error;
        if (fs::is_regular_file(path, error)) candidates.push_back(path.string());
      }
    }
  }
  candidates.insert(candidates.end(), std::begin(kNames), std::end(kNames));
  for (const std::string& folder : search.python_packages) add_python_packages(folder, candidates);
  return candidates;
}

Result<NvrtcLibrary> load_nvrtc(const NvrtcSearch& search) {
  std::string reasons;
  for (const std::string& candidate : nvrtc_candidates(search)) {
    Result<NvrtcLibrary> opened = open_library(candidate);
    if (opened.ok()) return opened;
    reasons += (reasons.empty() ? "" : "; ") + opened.error().message();
  }
  return fail(ErrorCode::kNotFound, "NVRTC is not installed ({})", reasons);
}

}  // namespace tern::cuda
