// The layout tiles16 of binary weights: 16 rows interleaved as the matrix instruction reads them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cuda/kernels/kernels.h"
#include "base/checked.h"
#include "base/half.h"

namespace tern::cuda {
namespace {

constexpr std::int64_t kBlockBytes = 18;

// Where word t of row r of a group lies in its chunk of `groups` groups.
std::int64_t word_offset(std::int64_t group, std::int64_t groups, std::int64_t r, std::int64_t t) {
  const std::int64_t lane = 4 * (r % 8) + t;
  const bool is_odd_last = group + 1 == groups && groups % 2 == 1;
  const std::int64_t in_pair = is_odd_last ? lane * 8 : lane * 16 + (group % 2) * 8;
  return group / 2 * 512 + in_pair + (r / 8) * 4;
}

}  // namespace

std::uint64_t tiles16_bytes(std::int64_t rows, std::int64_t inputs) {
  return static_cast<std::uint64_t>(ceil_div(rows, kTernTileRows)) *
         static_cast<std::uint64_t>(inputs / kTernGroup) * kTernTileGroupBytes;
}

std::int64_t repack_tiles16(const std::byte* blocks, std::int64_t inputs, std::int64_t row_count,
                            std::byte* to) {
  const std::int64_t groups = inputs / kTernGroup;
  std::int64_t bad = -1;
  std::memset(to, 0, static_cast<std::size_t>(tiles16_bytes(row_count, inputs)));
  for (std::int64_t row = 0; row < row_count; ++row) {
    const std::int64_t r = row % kTernTileRows;
    std::byte* tile = to + row / kTernTileRows * groups * kTernTileGroupBytes;
    const std::byte* source = blocks + row * groups * kBlockBytes;
    for (std::int64_t first = 0; first < groups; first += kTernChunkGroups) {
      const std::int64_t count = std::min<std::int64_t>(kTernChunkGroups, groups - first);
      std::byte* chunk = tile + first * kTernTileGroupBytes;
      for (std::int64_t g = 0; g < count; ++g) {
        const std::byte* block = source + (first + g) * kBlockBytes;
        for (std::int64_t t = 0; t < 4; ++t)
          std::memcpy(chunk + word_offset(g, count, r, t), block + 2 + 4 * t, 4);
        std::uint16_t scale = 0;
        std::memcpy(&scale, block, 2);
        if (bad < 0 && !std::isfinite(half_to_float(scale))) bad = row * groups + first + g;
        std::memcpy(chunk + count * 256 + (((r % 8) * 2 + r / 8) * count + g) * 2, &scale, 2);
      }
    }
  }
  return bad;
}

}  // namespace tern::cuda
