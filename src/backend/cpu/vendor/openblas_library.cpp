// Loading of OpenBLAS into a namespace of its own.
#include "backend/cpu/vendor/openblas_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace tern::cpu {

namespace {

// CBLAS_ORDER and CBLAS_TRANSPOSE of cblas.h.
constexpr int kRowMajor = 101;
constexpr int kAsStored = 111;
constexpr int kTransposed = 112;

using SgemmFn = void (*)(int order, int a_transposed, int b_transposed, int m, int n, int k,
                         float alpha, const float* a, int lda, const float* b, int ldb, float beta,
                         float* c, int ldc);

// What to call a processor that the library takes for one of 2004, best first.
struct CoreRow {
  const char* name;
  CpuFeatures needs;
};
constexpr std::array kCores = {
    CoreRow{"SkylakeX",
            {CpuFeature::kAvx512f, CpuFeature::kAvx512bw, CpuFeature::kAvx512dq,
             CpuFeature::kAvx512vl, CpuFeature::kAvx2, CpuFeature::kFma}},
    CoreRow{"Haswell", {CpuFeature::kAvx2, CpuFeature::kFma}},
};
constexpr std::string_view kUnknownProcessor = "Prescott";

std::string loader_message() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "no reason given";
}

// Handles in the order of their opening; closed in the other.
class Handles {
 public:
  Handles() = default;
  Handles(Handles&& other) noexcept : handles_(std::exchange(other.handles_, {})) {}
  Handles& operator=(Handles&& other) noexcept {
    std::swap(handles_, other.handles_);
    return *this;
  }
  ~Handles() {
    while (!handles_.empty()) {
      ::dlclose(handles_.back());
      handles_.pop_back();
    }
  }
  void push(void* handle) { handles_.push_back(handle); }
  [[nodiscard]] void* library() const { return handles_.back(); }

 private:
  std::vector<void*> handles_;
};

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(::dlsym(library, name));
}

std::string call_text(void* library, const char* name) {
  const auto function = symbol<char* (*)()>(library, name);
  const char* text = function != nullptr ? function() : nullptr;
  return text != nullptr ? text : "unknown";
}

// `core` may be null. Variables that the user has set stay as they are, except for the threads.
Result<Handles> open_private([[maybe_unused]] const std::string& name,
                             [[maybe_unused]] const char* core) {
#if defined(__GLIBC__)
  Handles handles;
  void* c_library = ::dlmopen(LM_ID_NEWLM, "libc.so.6", RTLD_NOW | RTLD_LOCAL);
  if (c_library == nullptr) return Error(ErrorCode::kNotFound, loader_message());
  handles.push(c_library);
  Lmid_t space = LM_ID_BASE;
  const auto set = symbol<int (*)(const char*, const char*, int)>(c_library, "setenv");
  if (set == nullptr || ::dlinfo(c_library, RTLD_DI_LMID, &space) != 0)
    return Error(ErrorCode::kNotFound, loader_message());
  if (set("OPENBLAS_NUM_THREADS", "1", 1) != 0 ||
      (core != nullptr && set("OPENBLAS_CORETYPE", core, 0) != 0))
    return Error(ErrorCode::kNotFound, "its environment could not be prepared");
  // Only into a namespace that holds the C library just opened: glibc 2.36 keeps the loader's lock
  // for ever when it is asked for one that is empty.
  void* library = ::dlmopen(space, name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error(ErrorCode::kNotFound, loader_message());
  handles.push(library);
  return handles;
#else
  return Error(ErrorCode::kNotFound, "this system has no private copies of libraries");
#endif
}

Result<Handles> open_shared(const std::string& name) {
  Handles handles;
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error(ErrorCode::kNotFound, loader_message());
  handles.push(library);
  return handles;
}

class Loaded final : public OpenblasLibrary {
 public:
  Loaded(Handles handles, SgemmFn function) : handles_(std::move(handles)), sgemm_(function) {}

  void sgemm(const SgemmArgs& x) const noexcept override {
    sgemm_(kRowMajor, x.is_a_transposed ? kTransposed : kAsStored,
           x.is_b_transposed ? kTransposed : kAsStored, x.m, x.n, x.k, x.alpha, x.a, x.a_row_stride,
           x.b, x.b_row_stride, x.beta, x.c, x.c_row_stride);
  }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("{}, kernels {}", call_text(handles_.library(), "openblas_get_config"),
                       core());
  }
  [[nodiscard]] std::string core() const override {
    return call_text(handles_.library(), "openblas_get_corename");
  }

 private:
  const Handles handles_;
  const SgemmFn sgemm_;
};

// A private copy, told the processor when it does not know it.
Result<Handles> open_best(const OpenblasLibrary::Options& options) {
  const auto best = std::find_if(kCores.begin(), kCores.end(), [&](const CoreRow& row) {
    return options.features.contains(row.needs);
  });
  {
    // Closed again before the next is opened, so that its thread-local storage comes back.
    TERN_ASSIGN(Handles untold, open_private(options.name, nullptr));
    if (best == kCores.end() ||
        call_text(untold.library(), "openblas_get_corename") != kUnknownProcessor)
      return untold;
  }
  Result<Handles> told = open_private(options.name, best->name);
  return told.ok() ? std::move(told) : open_private(options.name, nullptr);
}

}  // namespace

Result<std::shared_ptr<const OpenblasLibrary>> OpenblasLibrary::load(const Options& options) {
  Result<Handles> opened = options.is_private ? open_best(options) : open_shared(options.name);
  std::string no_copy = options.is_private ? "" : "not asked for";
  if (!opened.ok() && options.is_private) {
    no_copy = opened.error().message();
    opened = open_shared(options.name);
  }
  if (!opened.ok()) {
    return fail(ErrorCode::kNotFound,
                "OpenBLAS is not there ({}); Tern's own kernels multiply. Install libopenblas0 to "
                "have it as a candidate",
                opened.error().message());
  }
  void* library = opened->library();
  const auto sgemm = symbol<SgemmFn>(library, "cblas_sgemm");
  const auto threads = symbol<int (*)()>(library, "openblas_get_num_threads");
  if (sgemm == nullptr || threads == nullptr) {
    return fail(ErrorCode::kUnsupported,
                "{} is no OpenBLAS: it lacks cblas_sgemm or "
                "openblas_get_num_threads",
                options.name);
  }
  if (threads() != 1) {
    return fail(
        ErrorCode::kUnsupported,
        "{} would run {} threads of its own, which is a setting of the whole process; "
        "install libopenblas0-serial or start with OPENBLAS_NUM_THREADS=1 (a copy of our own: "
        "{})",
        options.name, threads(), no_copy);
  }
  return std::shared_ptr<const OpenblasLibrary>(
      std::make_shared<Loaded>(std::move(opened).value(), sgemm));
}

}  // namespace tern::cpu
