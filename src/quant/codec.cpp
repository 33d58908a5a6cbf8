// One switch over the formats; everything else is a loop over blocks.
#include "quant/codec.h"

#include "quant/dense.h"
#include "quant/q1_g128.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q8_0.h"
#include "quant/t1_g128.h"
#include "quant/t1_g256.h"
#include "quant/t2_g128.h"
#include "quant/t2_g256.h"
#include "quant/t2_g64.h"

namespace tern::quant {
namespace {

// Calls f with an object of the block type of a format.
template <class F>
auto with_block(Format format, F&& f) {
  switch (format) {
    case Format::kF32:
      return f(F32{});
    case Format::kF16:
      return f(F16{});
    case Format::kBf16:
      return f(Bf16{});
    case Format::kQ4_0:
      return f(Q4_0{});
    case Format::kQ4_1:
      return f(Q4_1{});
    case Format::kQ8_0:
      return f(Q8_0{});
    case Format::kQ1G128:
      return f(Q1G128{});
    case Format::kT2G64:
      return f(T2G64{});
    case Format::kT2G128:
      return f(T2G128{});
    case Format::kT1G128:
      return f(T1G128{});
    case Format::kT1G256:
      return f(T1G256{});
    case Format::kT2G256:
      break;
  }
  return f(T2G256{});
}

template <class Block>
concept HasCodes = requires(const std::byte* block, std::int8_t* codes) {
  Block::decode_codes(block, codes);
};
template <class Block>
concept HasScale = requires(const std::byte* block) {
  Block::scale(block);
};

template <class Block>
Result<void> encode_blocks(Format format, const float* x, std::int64_t count, std::byte* bytes) {
  for (std::int64_t i = 0; i < count / Block::kGroup; ++i) {
    if (Block::encode(x + i * Block::kGroup, bytes + i * static_cast<std::int64_t>(Block::kBytes)))
      continue;
    return fail(
        ErrorCode::kNumeric,
        "group {} (weights {}..{}) cannot be stored as {}: a scale of at most 65504 that does not "
        "round to 0 is needed",
        i, i * Block::kGroup, (i + 1) * Block::kGroup, info(format).file_name);
  }
  return {};
}

}  // namespace

void decode_row(Format format, const std::byte* bytes, std::int64_t count, float* out) {
  TERN_ASSERT(count % info(format).group == 0);
  with_block(format, [&]<class Block>(Block) {
    for (std::int64_t i = 0; i < count / Block::kGroup; ++i) {
      Block::decode_block(bytes + i * static_cast<std::int64_t>(Block::kBytes),
                          out + i * Block::kGroup);
    }
  });
}

void decode_codes_row(Format format, const std::byte* bytes, std::int64_t count, std::int8_t* codes,
                      std::uint16_t* scales) {
  TERN_ASSERT(is_packed(format) && count % info(format).group == 0);
  with_block(format, [&]<class Block>(Block) {
    if constexpr (HasCodes<Block>) {
      for (std::int64_t i = 0; i < count / Block::kGroup; ++i) {
        const std::byte* block = bytes + i * static_cast<std::int64_t>(Block::kBytes);
        Block::decode_codes(block, codes + i * Block::kGroup);
        scales[i] = load_u16(block + Block::kScaleAt);
      }
    }
  });
}

Result<void> encode_row(Format format, const float* x, std::int64_t count, std::byte* bytes) {
  TERN_ASSERT(count % info(format).group == 0);
  return with_block(
      format, [&]<class Block>(Block) { return encode_blocks<Block>(format, x, count, bytes); });
}

std::optional<std::int64_t> first_bad_scale(Format format, std::span<const std::byte> bytes) {
  return with_block(format, [&]<class Block>(Block) -> std::optional<std::int64_t> {
    if constexpr (HasScale<Block>) {
      const auto blocks = static_cast<std::int64_t>(bytes.size() / Block::kBytes);
      for (std::int64_t i = 0; i < blocks; ++i) {
        const std::byte* block = bytes.data() + i * static_cast<std::int64_t>(Block::kBytes);
        bool good = std::isfinite(Block::scale(block));
        if constexpr (std::is_same_v<Block, Q4_1>) {
          good = good && std::isfinite(Block::minimum(block));
        }
        if (!good) return i;
      }
    }
    return std::nullopt;
  });
}

bool scale_is_nan(Format format, const std::byte* block) {
  return with_block(format, [block]<class Block>(Block) {
    bool is_nan = false;
    if constexpr (HasScale<Block>) is_nan = std::isnan(Block::scale(block));
    if constexpr (std::is_same_v<Block, Q4_1>) is_nan = is_nan || std::isnan(Q4_1::minimum(block));
    return is_nan;
  });
}

}  // namespace tern::quant
