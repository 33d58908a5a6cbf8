// How many threadgroups and threads each Metal kernel is launched with.
#include <algorithm>

#include "backend/metal/kernels/kernels.h"
#include "base/checked.h"

namespace tern::metal {
namespace {

// Threadgroups that share rows: enough to fill any GPU of today.
constexpr std::uint64_t kSharingGroups = 1024;

std::uint32_t narrow(std::int64_t value) { return static_cast<std::uint32_t>(value); }

template <class Params>
Launch make(KernelId kernel, std::int64_t grid_x, std::uint32_t rows, std::int64_t threads,
            const Params& p) {
  Launch launch;
  launch.kernel = kernel;
  launch.grid_x = narrow(grid_x);
  launch.grid_y = rows;
  launch.threads = narrow(threads);
  launch.set(p);
  return launch;
}

}  // namespace

RecordLayout record_layout(std::int64_t width) {
  const auto groups = static_cast<std::uint64_t>(ceil_div(width, kTernGroup));
  RecordLayout layout;
  layout.scales_offset = groups * kTernGroup * 2;
  layout.record_bytes = (layout.scales_offset + groups * 8 + 255) / 256 * 256;
  return layout;
}

Launch gemv_launch(const TernGemvParams& p, std::uint32_t rows) {
  return make(KernelId::kGemvQ1G128, ceil_div(std::int64_t{p.outputs}, 8), rows, 128, p);
}

Launch quantize_launch(const TernQuantizeParams& p, std::uint32_t rows) {
  const std::int64_t groups = ceil_div(std::int64_t{p.width}, kTernGroup);
  return make(KernelId::kQuantizeI12, ceil_div(groups, 8), rows, 256, p);
}

Launch rms_norm_launch(const TernRmsNormParams& p, std::uint32_t rows) {
  const std::int64_t threads =
      std::clamp<std::int64_t>(round_up(ceil_div(std::int64_t{p.width}, 4), 32), 32, 1024);
  return make(KernelId::kRmsNorm, p.runs, rows, threads, p);
}

Launch embed_launch(const TernEmbedParams& p, std::uint32_t rows) {
  return make(KernelId::kEmbedQ1G128, p.width / kTernGroup, rows, 128, p);
}

Launch gather_launch(const TernGatherParams& p, std::uint32_t rows) {
  return make(KernelId::kGatherRows, ceil_div(std::int64_t{p.width}, 256), rows, 256, p);
}

std::uint32_t argmax_parts(std::uint64_t width, int cores) {
  const auto pieces = static_cast<std::uint64_t>(std::max(cores, 1));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(width / 1024, 1, pieces));
}

Launch argmax_parts_launch(const TernArgmaxParams& p, std::uint32_t rows) {
  return make(KernelId::kArgmaxParts, p.part_count, rows, 256, p);
}

Launch argmax_merge_launch(const TernArgmaxParams& p, std::uint32_t rows) {
  return make(KernelId::kArgmaxMerge, 1, rows, 256, p);
}

Launch read_launch(const TernReadParams& p, std::uint32_t groups) {
  return make(KernelId::kReadBytes, groups, 1, 512, p);
}

Launch convert_launch(const TernConvertParams& p) {
  const std::uint64_t rows = p.cols == 0 ? 0 : p.rows * p.batch;
  return make(KernelId::kConvert, static_cast<std::int64_t>(std::min(rows, kSharingGroups)), 1, 256,
              p);
}

Launch epilogue_launch(const TernEpilogueParams& p) {
  const std::uint64_t rows = p.cols == 0 ? 0 : p.rows * p.batch;
  return make(KernelId::kGemmEpilogue, static_cast<std::int64_t>(std::min(rows, kSharingGroups)), 1,
              256, p);
}

}  // namespace tern::metal
