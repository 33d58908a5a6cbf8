// The layout split of binary weights: codes of all groups, then scales of all groups.
#include <cmath>
#include <cstring>

#include "backend/metal/kernels/kernels.h"
#include "base/half.h"

namespace tern::metal {
namespace {

constexpr std::int64_t kBlockBytes = 18;
constexpr std::int64_t kCodeBytes = 16;

}  // namespace

std::uint64_t split_bytes(std::int64_t rows, std::int64_t inputs) {
  return static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(inputs / kTernGroup) *
         static_cast<std::uint64_t>(kBlockBytes);
}

std::int64_t repack_split(const std::byte* blocks, std::int64_t first, std::int64_t count,
                          std::int64_t total, std::byte* weight) {
  std::byte* codes = weight + first * kCodeBytes;
  std::byte* scales = weight + total * kCodeBytes + first * 2;
  std::int64_t bad = -1;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::byte* block = blocks + i * kBlockBytes;
    std::uint16_t scale = 0;
    std::memcpy(&scale, block, 2);
    if (bad < 0 && !std::isfinite(half_to_float(scale))) bad = i;
    std::memcpy(scales + i * 2, block, 2);
    std::memcpy(codes + i * kCodeBytes, block + 2, static_cast<std::size_t>(kCodeBytes));
  }
  return bad;
}

}  // namespace tern::metal
