// How many blocks and threads each CUDA kernel is launched with.
#include <algorithm>

#include "backend/cuda/kernels/kernels.h"
#include "base/checked.h"

namespace tern::cuda {
namespace {

// Shared memory that needs no opting in.
constexpr std::uint64_t kSharedBytes = 48 * 1024;

unsigned narrow(std::int64_t value) { return static_cast<unsigned>(value); }

}  // namespace

RecordLayout record_layout(std::int64_t width) {
  const auto chunks = static_cast<std::uint64_t>(ceil_div(width, kTernGroup * kTernChunkGroups));
  RecordLayout layout;
  layout.scales_offset = chunks * kTernPlaneChunkBytes;
  layout.record_bytes = (layout.scales_offset + chunks * kTernScaleChunkBytes + 255) / 256 * 256;
  return layout;
}

KernelId gemv_variant(std::int64_t inputs) {
  // 16 chunks fill a block of b1_mma, which was the faster one below (H200, docs/cuda.md).
  constexpr std::int64_t kDeepInputs = 16 * kTernGroup * kTernChunkGroups;
  return inputs > kDeepInputs ? KernelId::kGemvQ1G128Deep : KernelId::kGemvQ1G128;
}

GemvGeometry gemv_geometry(KernelId kernel, std::int64_t outputs, std::int64_t inputs, int cores,
                           int most_warps, int blocks_per_core) {
  const std::int64_t chunks = ceil_div(inputs, kTernGroup * kTernChunkGroups);
  const std::int64_t tiles = ceil_div(outputs, kTernTileRows);
  const std::int64_t limit = info(kernel).max_threads / 32;
  const std::int64_t wanted = most_warps > 0 ? std::min<std::int64_t>(most_warps, limit) : limit;
  // Whole tiles side by side, or the chunks of one tile in as few even passes as possible.
  const std::int64_t warps =
      chunks <= wanted ? wanted / chunks * chunks : ceil_div(chunks, ceil_div(chunks, wanted));
  const std::int64_t resident =
      std::max<std::int64_t>(cores, 1) * (blocks_per_core > 0 ? blocks_per_core : 1);
  const std::int64_t side_by_side = std::max<std::int64_t>(warps / chunks, 1);
  const auto tile_sums = static_cast<std::uint64_t>(chunks) * kTernTileRows * sizeof(float);
  const auto most_tiles =
      std::max<std::int64_t>(static_cast<std::int64_t>(kSharedBytes / tile_sums), 1);
  // No more blocks than have a tile for each of their warps; enough that the sums of a block's
  // tiles fit into shared memory.
  std::int64_t blocks = std::min(resident, ceil_div(tiles, side_by_side));
  if (ceil_div(tiles, blocks) > most_tiles)
    blocks = ceil_div(ceil_div(tiles, most_tiles), resident) * resident;
  GemvGeometry g;
  g.kernel = kernel;
  g.blocks = narrow(blocks);
  g.threads = narrow(warps * 32);
  g.shared_bytes =
      static_cast<unsigned>(static_cast<std::uint64_t>(ceil_div(tiles, blocks)) * tile_sums);
  return g;
}

Launch gemv_launch(const TernGemvParams& p, unsigned rows, const GemvGeometry& g) {
  Launch launch{g.kernel, g.blocks, rows, g.threads, g.shared_bytes, {}};
  launch.set(p);
  return launch;
}

Launch quantize_launch(const TernQuantizeParams& p, unsigned rows) {
  const std::int64_t groups = ceil_div(p.width, kTernGroup * kTernChunkGroups) * kTernChunkGroups;
  Launch launch{KernelId::kQuantizeI12, narrow(ceil_div(groups, 8)), rows, 256, 0, {}};
  launch.set(p);
  return launch;
}

Launch rms_norm_launch(const TernRmsNormParams& p, unsigned rows) {
  const std::int64_t threads =
      std::clamp<std::int64_t>(round_up(ceil_div(p.width, 4), 32), 32, 1024);
  Launch launch{KernelId::kRmsNorm, p.runs, rows, narrow(threads), 0, {}};
  launch.set(p);
  return launch;
}

Launch embed_launch(const TernEmbedParams& p, unsigned rows) {
  Launch launch{KernelId::kEmbedQ1G128, p.width / kTernGroup, rows, 128, 0, {}};
  launch.set(p);
  return launch;
}

Launch gather_launch(const TernGatherParams& p, unsigned rows) {
  Launch launch{KernelId::kGatherRows, narrow(ceil_div(p.width, 256)), rows, 256, 0, {}};
  launch.set(p);
  return launch;
}

unsigned argmax_parts(std::uint64_t width, int cores) {
  const auto pieces = static_cast<std::uint64_t>(std::max(cores, 1));
  return static_cast<unsigned>(std::clamp<std::uint64_t>(width / 1024, 1, pieces));
}

Launch argmax_parts_launch(const TernArgmaxParams& p, unsigned rows) {
  Launch launch{KernelId::kArgmaxParts, p.part_count, rows, 256, 0, {}};
  launch.set(p);
  return launch;
}

Launch argmax_merge_launch(const TernArgmaxParams& p, unsigned rows) {
  Launch launch{KernelId::kArgmaxMerge, 1, rows, 256, 0, {}};
  launch.set(p);
  return launch;
}

Launch read_launch(const TernReadParams& p, unsigned blocks) {
  Launch launch{KernelId::kReadBytes, blocks, 1, 512, 0, {}};
  launch.set(p);
  return launch;
}

namespace {

// Blocks that share `rows`: a few waves, no more than there is work.
unsigned row_blocks(std::uint64_t rows, int cores) {
  const auto most = static_cast<std::uint64_t>(std::max(cores, 1)) * 16;
  return static_cast<unsigned>(std::min(rows, most));
}

}  // namespace

Launch convert_launch(const TernConvertParams& p, int cores) {
  const std::uint64_t rows = p.cols == 0 ? 0 : p.rows * p.batch;
  Launch launch{KernelId::kConvert, row_blocks(rows, cores), 1, 256, 0, {}};
  launch.set(p);
  return launch;
}

Launch epilogue_launch(const TernEpilogueParams& p, int cores) {
  const std::uint64_t rows = p.cols == 0 ? 0 : p.rows * p.batch;
  Launch launch{KernelId::kGemmEpilogue, row_blocks(rows, cores), 1, 256, 0, {}};
  launch.set(p);
  return launch;
}

}  // namespace tern::cuda
