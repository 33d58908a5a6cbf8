// The table of Metal kernels: where each one comes from, what it takes, and how it is launched.
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

namespace tern::metal {

enum class KernelId : std::uint8_t {
  kGemvQ1G128,
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
  std::string_view entry;  // in the library
  std::uint32_t params_bytes;
  std::uint32_t params_layout;
  std::uint32_t max_threads;  // of a threadgroup, at the largest launch
};

inline constexpr std::array kKernels = {
    KernelInfo{KernelId::kGemvQ1G128, "gemv_q1_g128", "simdgroup", "gemv_q1_g128",
               "gemv_q1_g128_simdgroup", sizeof(TernGemvParams), TERN_GEMV_LAYOUT, 128},
    KernelInfo{KernelId::kQuantizeI12, "quantize", "integers", "quantize", "quantize_i12",
               sizeof(TernQuantizeParams), TERN_QUANTIZE_LAYOUT, 256},
    KernelInfo{KernelId::kRmsNorm, "rms_norm", "group", "rms_norm", "rms_norm",
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

// Where a weight lies: one of the buffers that hold the weights, and bytes from its start.
struct WeightPlace {
  std::uint32_t buffer = 0;
  std::uint64_t offset = 0;
};

// One dispatch of a kernel with its parameters. Bound are: 0 the buffer of the weight, 1 the arena,
// 2 the batch block, 3 the parameters, 4 the buffer of the bias; offsets inside the parameters are
// from the start of those.
struct Launch {
  static constexpr std::size_t kParamsBytes = 128;
  KernelId kernel = KernelId::kQuantizeI12;
  std::uint32_t grid_x = 1;
  std::uint32_t grid_y = 1;  // rows
  std::uint32_t threads = 1;
  std::uint32_t weight_buffer = 0;
  std::uint32_t bias_buffer = 0;
  std::array<std::byte, kParamsBytes> params{};

  template <class Params>
  void set(const Params& p) {
    static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kParamsBytes);
    std::memcpy(params.data(), &p, sizeof p);
  }
};

// ---- How each kernel is launched: pure functions of shapes. ----

// Quantised rows on the device: per row the integers (i16, whole groups of 128), then one scale
// (f32) a group, then one sum of integers (i32) a group.
struct RecordLayout {
  std::uint64_t scales_offset = 0;
  std::uint64_t record_bytes = 0;  // a multiple of 256
};
[[nodiscard]] RecordLayout record_layout(std::int64_t width);

[[nodiscard]] Launch gemv_launch(const TernGemvParams& p, std::uint32_t rows);
[[nodiscard]] Launch quantize_launch(const TernQuantizeParams& p, std::uint32_t rows);
[[nodiscard]] Launch rms_norm_launch(const TernRmsNormParams& p, std::uint32_t rows);
[[nodiscard]] Launch embed_launch(const TernEmbedParams& p, std::uint32_t rows);
[[nodiscard]] Launch gather_launch(const TernGatherParams& p, std::uint32_t rows);
// Parts of a row that argmax finds apart.
[[nodiscard]] std::uint32_t argmax_parts(std::uint64_t width, int cores);
[[nodiscard]] Launch argmax_parts_launch(const TernArgmaxParams& p, std::uint32_t rows);
[[nodiscard]] Launch argmax_merge_launch(const TernArgmaxParams& p, std::uint32_t rows);
[[nodiscard]] Launch read_launch(const TernReadParams& p, std::uint32_t groups);

// Around a vendor's product. Their operands lie in allocations of their own: the "addresses" of the
// parameters are bytes from the start of a buffer. convert: from in 0, to in 1. gemm_epilogue:
// source in 0, d in 1, c in 2, bias in 4, and in TernEpilogueParams::activation which of them are
// there.
enum EpilogueParts : std::uint32_t { kHasSource = 0x100, kHasC = 0x200, kHasBias = 0x400 };
[[nodiscard]] Launch convert_launch(const TernConvertParams& p);
[[nodiscard]] Launch epilogue_launch(const TernEpilogueParams& p);

// ---- The layout split of packed weights: all codes (16 bytes a group), then all scales (f16).
// ----

[[nodiscard]] std::uint64_t split_bytes(std::int64_t rows, std::int64_t inputs);
// Lays out `count` of the file's blocks (format q1_g128, any alignment), the first of them being
// block `first` of a weight of `total` blocks that starts at `weight`. Returns the number of the
// first block of these whose scale is not finite, or -1.
[[nodiscard]] std::int64_t repack_split(const std::byte* blocks, std::int64_t first,
                                        std::int64_t count, std::int64_t total, std::byte* weight);

}  // namespace tern::metal
