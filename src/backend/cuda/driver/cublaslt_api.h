// cuBLASLt, NVIDIA's matrix products, as a struct of function pointers, with the documented values
// of what Tern sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/driver/driver_types.h"
#include "backend/cuda/driver/library_search.h"
#include "base/error.h"

namespace tern::cuda {

struct LtHandle;
struct LtMatmul;
struct LtLayout;
struct LtPreference;

struct LtAlgorithm {
  std::uint64_t data[8] = {};
};
struct LtHeuristic {
  LtAlgorithm algorithm;
  std::size_t workspace_bytes = 0;
  int status = 0;
  float waves = 0;
  int reserved[4] = {};
};
static_assert(sizeof(LtHeuristic) == 96);

inline constexpr int kLtCompute32F = 68;
inline constexpr int kLtF32 = 0, kLtF16 = 2, kLtBf16 = 14;  // data types
enum LtMatmulAttribute : int {
  kLtTransposeA = 3,
  kLtTransposeB = 4,
  kLtEpilogue = 7,
  kLtBiasPointer = 8,
  kLtBiasType = 26,
};
enum LtLayoutAttribute : int { kLtBatchCount = 5, kLtBatchStride = 6 };
enum LtPreferenceAttribute : int {
  kLtWorkspaceBytes = 1,
  kLtReductionSchemes = 3,
  kLtAlignmentA = 5,
  kLtAlignmentB = 6,
  kLtAlignmentC = 7,
  kLtAlignmentD = 8,
};
inline constexpr int kLtEpilogueDefault = 1, kLtEpilogueRelu = 2, kLtEpilogueBias = 4,
                     kLtEpilogueGelu = 32;
inline constexpr int kLtNone = 0, kLtTranspose = 1;

#define TERN_CUDA_CUBLASLT(X)                                                                      \
  X(create, cublasLtCreate, (LtHandle * *handle))                                                  \
  X(destroy, cublasLtDestroy, (LtHandle * handle))                                                 \
  X(matmul_create, cublasLtMatmulDescCreate, (LtMatmul * *matmul, int compute, int scale))         \
  X(matmul_destroy, cublasLtMatmulDescDestroy, (LtMatmul * matmul))                                \
  X(matmul_set, cublasLtMatmulDescSetAttribute,                                                    \
    (LtMatmul * matmul, int attribute, const void* value, std::size_t bytes))                      \
  X(layout_create, cublasLtMatrixLayoutCreate,                                                     \
    (LtLayout * *layout, int type, std::uint64_t rows, std::uint64_t cols, std::int64_t stride))   \
  X(layout_destroy, cublasLtMatrixLayoutDestroy, (LtLayout * layout))                              \
  X(layout_set, cublasLtMatrixLayoutSetAttribute,                                                  \
    (LtLayout * layout, int attribute, const void* value, std::size_t bytes))                      \
  X(preference_create, cublasLtMatmulPreferenceCreate, (LtPreference * *preference))               \
  X(preference_destroy, cublasLtMatmulPreferenceDestroy, (LtPreference * preference))              \
  X(preference_set, cublasLtMatmulPreferenceSetAttribute,                                          \
    (LtPreference * preference, int attribute, const void* value, std::size_t bytes))              \
  X(heuristic, cublasLtMatmulAlgoGetHeuristic,                                                     \
    (LtHandle * handle, LtMatmul * matmul, LtLayout * a, LtLayout * b, LtLayout * c, LtLayout * d, \
     LtPreference * preference, int wanted, LtHeuristic* results, int* found))                     \
  X(matmul, cublasLtMatmul,                                                                        \
    (LtHandle * handle, LtMatmul * matmul, const void* alpha, Address a, LtLayout* a_layout,       \
     Address b, LtLayout* b_layout, const void* beta, Address c, LtLayout* c_layout, Address d,    \
     LtLayout* d_layout, const LtAlgorithm* algorithm, Address workspace,                          \
     std::size_t workspace_bytes, StreamHandle* stream))

// Every member returns a status, 0 is success.
struct CublasLtApi {
#define TERN_MEMBER(member, symbol, parameters) int(*member) parameters = nullptr;
  TERN_CUDA_CUBLASLT(TERN_MEMBER)
#undef TERN_MEMBER
  std::size_t (*version)() = nullptr;  // 130000 for 13.0
  std::string path;
};

// Errors: kNotFound without the library; kUnsupported for one that lacks a function.
[[nodiscard]] Result<CublasLtApi> load_cublaslt_api(const LibrarySearch& search);

// The word of a status: "NOT_SUPPORTED".
[[nodiscard]] const char* lt_status_name(int status);

}  // namespace tern::cuda
