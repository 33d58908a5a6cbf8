// OpenBLAS, found at run time: a private copy that runs one thread, or the reason why there is
// none.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/cpu_features.h"
#include "base/error.h"

namespace tern::cpu {

// One matrix product on the calling thread, row-major, in f32:
//   c = alpha * op(a) * op(b) + beta * c,  [m,k] * [k,n] -> [m,n];  beta = 0: c is not read.
// m, n and k are positive; leading dimensions are row strides in elements.
struct SgemmArgs {
  int m = 0, n = 0, k = 0;
  bool is_a_transposed = false, is_b_transposed = false;
  float alpha = 1.0f;
  const float* a = nullptr;
  int a_row_stride = 0;
  const float* b = nullptr;
  int b_row_stride = 0;
  float beta = 0.0f;
  float* c = nullptr;
  int c_row_stride = 0;
};

// A loaded copy of the library. sgemm may be called from any number of threads at once.
//
// OpenBLAS has one number of threads per copy of the library, and Debian's usual build (pthread)
// starts a pool of its own that would fight ours. That number is a setting of everyone in the
// process who uses that copy, so it is not ours to change. Therefore we load a copy that nobody
// else has: glibc's dlmopen gives it a namespace with a C library of its own, in whose environment
// OPENBLAS_NUM_THREADS is 1 when the library starts; the process's environment and the copy that
// others use stay as they are. It also cures a second fault: a library older than the processor
// (0.3.21 and Emerald Rapids, for instance) takes it for a Prescott and runs SSE3 code; in our
// namespace it is told which kernels to take, unless the user has said so.
//
// A copy costs about 4 MB, and room in a fixed area of thread-local storage that glibc gets back
// only when the youngest copy is closed first; a process has room for about ten. So load once and
// share the pointer among the engines of a process; who finds no room is told so and multiplies
// without.
//
// Where there is no dlmopen, or it fails, the ordinary copy serves if it runs one thread anyway
// (Debian's libopenblas0-serial; OPENBLAS_NUM_THREADS=1), and otherwise there is none.
class OpenblasLibrary {
 public:
  struct Options {
    std::string name = "libopenblas.so.0";
    CpuFeatures features = cpu_features();
    bool is_private = true;  // false: the ordinary copy only (tests)
  };
  // Errors: kNotFound, with the loader's message: absence is normal. kUnsupported: it would run
  // threads of its own.
  [[nodiscard]] static Result<std::shared_ptr<const OpenblasLibrary>> load(const Options& options);
  [[nodiscard]] static Result<std::shared_ptr<const OpenblasLibrary>> load() {
    return load(Options());
  }

  virtual ~OpenblasLibrary() = default;
  OpenblasLibrary(const OpenblasLibrary&) = delete;
  OpenblasLibrary& operator=(const OpenblasLibrary&) = delete;
  virtual void sgemm(const SgemmArgs& args) const noexcept = 0;
  // The library's own words: "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..., kernels SkylakeX".
  [[nodiscard]] virtual std::string describe() const = 0;
  [[nodiscard]] virtual std::string core() const = 0;  // "SkylakeX"

 protected:
  OpenblasLibrary() = default;
};

}  // namespace tern::cpu
