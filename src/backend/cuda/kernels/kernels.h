// The table of CUDA kernels: where each one comes from, what it takes, and how it is launched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "backend/gpu/params/gemm_finish.h"
#include "backend/gpu/params/gemv.h"
#include "backend/gpu/params/rows.h"
#include "backend/gpu/params/rowwise.h"

namespace tern::cuda {

enum class KernelId : std::uint8_t {
  kGemvQ1G128,
  kGemvQ1G128Deep,
  kQuantizeI12,
  kRmsNorm,
  kEmbedQ1G128,
  kGatherRows,
  kArgmaxParts,
  kArgmaxMerge,
  kReadBytes,
  kConvert,
  kGemmEpilogue,
};

// One row per kernel variant. `source` is the file's stem, below kernels/; several kernels may come
// from one source.
struct KernelInfo {
  KernelId id;
  std::string_view name;     // of the op and format
  std::string_view variant;  // the second name
  std::string_view source;
  std::string_view entry;  // in the module
  std::uint32_t params_bytes;
  std::uint32_t params_layout;
  int max_threads;
};

inline constexpr std::array kKernels = {
    KernelInfo{KernelId::kGemvQ1G128, "gemv_q1_g128", "b1_mma", "gemv_q1_g128",
               "gemv_q1_g128_b1_mma", sizeof(TernGemvParams), TERN_GEMV_LAYOUT, 512},
    KernelInfo{KernelId::kGemvQ1G128Deep, "gemv_q1_g128", "b1_mma_deep", "gemv_q1_g128",
               "gemv_q1_g128_b1_mma_deep", sizeof(TernGemvParams), TERN_GEMV_LAYOUT, 768},
    KernelInfo{KernelId::kQuantizeI12, "quantize", "planes", "quantize", "quantize_i12",
               sizeof(TernQuantizeParams), TERN_QUANTIZE_LAYOUT, 256},
    KernelInfo{KernelId::kRmsNorm, "rms_norm", "block", "rms_norm", "rms_norm",
               sizeof(TernRmsNormParams), TERN_RMS_NORM_LAYOUT, 1024},
    KernelInfo{KernelId::kEmbedQ1G128, "embed", "q1_g128", "embed_q1_g128", "embed_q1_g128",
               sizeof(TernEmbedParams), TERN_EMBED_LAYOUT, 128},
    KernelInfo{KernelId::kGatherRows, "gather_rows", "copy", "gather_rows", "gather_rows",
               sizeof(TernGatherParams), TERN_GATHER_LAYOUT, 256},
    KernelInfo{KernelId::kArgmaxParts, "argmax", "parts", "argmax", "argmax_parts",
               sizeof(TernArgmaxParams), TERN_ARGMAX_LAYOUT, 256},
    KernelInfo{KernelId::kArgmaxMerge, "argmax", "merge", "argmax", "argmax_merge",
               sizeof(TernArgmaxParams), TERN_ARGMAX_LAYOUT, 256},
    KernelInfo{KernelId::kReadBytes, "read_bytes", "wide", "read_bytes", "read_bytes",
               sizeof(TernReadParams), TERN_READ_LAYOUT, 512},
    KernelInfo{KernelId::kConvert, "convert", "rows", "convert", "convert",
               sizeof(TernConvertParams), TERN_CONVERT_LAYOUT, 256},
    KernelInfo{KernelId::kGemmEpilogue, "gemm_epilogue", "rows", "gemm_epilogue", "gemm_epilogue",
               sizeof(TernEpilogueParams), TERN_EPILOGUE_LAYOUT, 256},
};

[[nodiscard]] constexpr const KernelInfo& info(KernelId id) {
  return kKernels[static_cast<std::size_t>(id)];
}

// One launch of a kernel with its parameters; offsets inside are relative to the three bases.
struct Launch {
  static constexpr std::size_t kParamsBytes = 128;
  KernelId kernel = KernelId::kQuantizeI12;
  unsigned grid_x = 1;
  unsigned grid_y = 1;  // rows
  unsigned threads = 1;
  unsigned shared_bytes = 0;
  std::array<std::byte, kParamsBytes> params{};

  template <class Params>
  void set(const Params& p) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kParamsBytes);
    std::memcpy(params.data(), &p, sizeof p);
  }
};

// ---- How each kernel is launched: pure functions of shapes and the number of multiprocessors.
// ----

// Quantised rows on the device, as params/gemv.h describes them.
struct RecordLayout {
  std::uint64_t scales_offset = 0;
  std::uint64_t record_bytes = 0;  // a multiple of 256
};
[[nodiscard]] RecordLayout record_layout(std::int64_t width);

// How a product of packed weights is launched. Every choice gives the same bits.
struct GemvGeometry {
  KernelId kernel = KernelId::kGemvQ1G128;
  unsigned blocks = 1;
  unsigned threads = 32;
  unsigned shared_bytes = 0;
};
// The variant that is fastest for rows of so many inputs: one pass over the chunks of a row.
[[nodiscard]] KernelId gemv_variant(std::int64_t inputs);
// most_warps: of a block, at most those of the kernel (0: as many); blocks_per_core: resident at
// once (0: one).
[[nodiscard]] GemvGeometry gemv_geometry(KernelId kernel, std::int64_t outputs, std::int64_t inputs,
                                         int cores, int most_warps = 0, int blocks_per_core = 0);
[[nodiscard]] Launch gemv_launch(const TernGemvParams& p, unsigned rows, const GemvGeometry& g);

[[nodiscard]] Launch quantize_launch(const TernQuantizeParams& p, unsigned rows);
[[nodiscard]] Launch rms_norm_launch(const TernRmsNormParams& p, unsigned rows);
[[nodiscard]] Launch embed_launch(const TernEmbedParams& p, unsigned rows);
[[nodiscard]] Launch gather_launch(const TernGatherParams& p, unsigned rows);
// Parts of a row that argmax finds apart.
[[nodiscard]] unsigned argmax_parts(std::uint64_t width, int cores);
[[nodiscard]] Launch argmax_parts_launch(const TernArgmaxParams& p, unsigned rows);
[[nodiscard]] Launch argmax_merge_launch(const TernArgmaxParams& p, unsigned rows);

// blocks: of the grid.
[[nodiscard]] Launch read_launch(const TernReadParams& p, unsigned blocks);
[[nodiscard]] Launch convert_launch(const TernConvertParams& p, int cores);
[[nodiscard]] Launch epilogue_launch(const TernEpilogueParams& p, int cores);

// ---- The layout tiles16 of packed weights. ----

[[nodiscard]] std::uint64_t tiles16_bytes(std::int64_t rows, std::int64_t inputs);
// Lays out row_count rows of the file's blocks (format q1_g128, row after row, any alignment) into
// whole tiles at `to`; what the last tile lacks becomes zeros. Returns the number of the first
// block whose scale is not finite, or -1.
[[nodiscard]] std::int64_t repack_tiles16(const std::byte* blocks, std::int64_t inputs,
                                          std::int64_t row_count, std::byte* to);

}  // namespace tern::cuda
