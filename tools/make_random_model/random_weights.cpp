// Blocks are random bytes with a random scale put in; the tables make ternary bytes out of any
// bytes.
#include "random_weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.h"
#include "quant/trits.h"

namespace tern::tools {
namespace {

using quant::Format;

// SplitMix64: one multiplication chain per 8 bytes, any seed is good.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
  }
  void fill(std::span<std::byte> bytes) {
    std::size_t at = 0;
    for (; at + 8 <= bytes.size(); at += 8) {
      const std::uint64_t value = next();
      std::memcpy(bytes.data() + at, &value, 8);
    }
    const std::uint64_t rest = next();
    std::memcpy(bytes.data() + at, &rest, bytes.size() - at);
  }

 private:
  std::uint64_t state_;
};

// Where a block keeps its scale and what its codes look like.
struct Recipe {
  std::size_t scale_at;
  float code_deviation;          // standard deviation of the codes as numbers
  std::size_t mapped_begin = 0;  // bytes that go through `map`
  std::size_t mapped_end = 0;
  std::size_t tail_end = 0;  // bytes from mapped_end on that go through the four-digit table
};

Recipe recipe_of(Format format) {
  switch (format) {
    case Format::kQ4_0:
      return {0, 4.61F};  // uniform -8..7
    case Format::kQ4_1:
      return {0, 4.61F};
    case Format::kQ8_0:
      return {0, 73.9F};  // uniform -128..127
    case Format::kQ1G128:
      return {0, 1.0F};
    case Format::kT2G64:
      return {0, 0.816F, 2, 18};
    case Format::kT2G128:
      return {0, 0.816F, 2, 34};
    case Format::kT1G128:
      return {26, 0.816F, 0, 24, 26};
    case Format::kT1G256:
      return {52, 0.816F, 0, 48, 52};
    default:
      return {64, 0.816F, 0, 64};  // kT2G256
  }
}

// Any byte to four 2-bit codes of 0..2, all about equally often.
std::array<std::byte, 256> two_bit_table() {
  std::array<std::byte, 256> table{};
  for (int i = 0; i < 256; ++i) {
    int word = i * 81 / 256;
    int byte = 0;
    for (int k = 0; k < 4; ++k, word /= 3) byte |= word % 3 << (2 * k);
    table[static_cast<std::size_t>(i)] = static_cast<std::byte>(byte);
  }
  return table;
}
// Any byte to a canonical byte of five or four base-3 digits.
std::array<std::byte, 256> trit_table(int digits) {
  std::array<std::byte, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned word = digits == 5 ? i * 243 / 256 : i * 81 / 256 * 3;
    table[i] = static_cast<std::byte>(quant::trit_byte(word));
  }
  return table;
}

// Scales from half to one and a half times the middle one, as halves.
std::array<std::uint16_t, 256> scale_table(float middle) {
  std::array<std::uint16_t, 256> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    table[i] = float_to_half(middle * (0.5F + (static_cast<float>(i) + 0.5F) / 256.0F));
  }
  return table;
}

class BlockMaker {
 public:
  BlockMaker(Format format, float deviation)
      : format_(format),
        recipe_(recipe_of(format)),
        scales_(scale_table(deviation / recipe_.code_deviation)),
        map_(recipe_.tail_end > 0 ? trit_table(5) : two_bit_table()),
        tail_map_(trit_table(4)) {
    // codes of -8..7 lean to the negative side: every other scale is negative, as writers of the
    // format have them
    if (format == Format::kQ4_0) {
      for (std::size_t i = 0; i < scales_.size(); i += 2) scales_[i] ^= 0x8000;
    }
  }

  // The block holds random bytes.
  void finish(std::byte* block) const {
    const auto pick = std::to_integer<std::size_t>(block[recipe_.scale_at]);
    std::memcpy(block + recipe_.scale_at, &scales_[pick], 2);
    if (format_ == Format::kQ4_1) {
      // the middle of the codes becomes zero
      const std::uint16_t minimum = float_to_half(-7.5F * half_to_float(scales_[pick]));
      std::memcpy(block + 2, &minimum, 2);
    }
    for (std::size_t i = recipe_.mapped_begin; i < recipe_.mapped_end; ++i) {
      block[i] = map_[std::to_integer<std::size_t>(block[i])];
    }
    for (std::size_t i = recipe_.mapped_end; i < recipe_.tail_end; ++i) {
      block[i] = tail_map_[std::to_integer<std::size_t>(block[i])];
    }
  }

 private:
  Format format_;
  Recipe recipe_;
  std::array<std::uint16_t, 256> scales_;
  std::array<std::byte, 256> map_;
  std::array<std::byte, 256> tail_map_;
};

// Hands a tensor out in pieces of about a megabyte.
Result<void> write_in_pieces(std::uint64_t blocks, std::size_t block_bytes,
                             const io::ByteSink& sink, const auto& make) {
  constexpr std::uint64_t kPiece = 1 << 20;
  const std::uint64_t most = std::max<std::uint64_t>(1, kPiece / block_bytes);
  std::vector<std::byte> piece;
  while (blocks > 0) {
    const std::uint64_t count = std::min(blocks, most);
    piece.resize(static_cast<std::size_t>(count) * block_bytes);
    make(std::span<std::byte>(piece));
    TERN_TRY(sink(piece));
    blocks -= count;
  }
  return {};
}

// Dense values are evenly spread, and drawn from a table of 65,536: a conversion for each would be
// slow.
io::TensorSource dense_weights(Format format, std::uint64_t weights, float deviation,
                               std::uint64_t seed) {
  const auto size = static_cast<std::size_t>(quant::info(format).block_bytes);
  return [=](const io::ByteSink& sink) {
    std::vector<std::uint32_t> table(65536);
    for (std::size_t i = 0; i < table.size(); ++i) {
      const float uniform =
          (static_cast<float>(i) + 0.5F) / 32768.0F - 1.0F;  // deviation 1 / sqrt(3)
      const float value = uniform * deviation * 1.7320508F;
      if (format == Format::kF32) {
        std::memcpy(&table[i], &value, sizeof value);
      } else {
        table[i] = format == Format::kF16 ? float_to_half(value) : float_to_bf16(value);
      }
    }
    Random random(seed);
    return write_in_pieces(weights, size, sink, [&](std::span<std::byte> piece) {
      std::uint64_t bits = 0;
      for (std::size_t at = 0, n = 0; at < piece.size(); at += size, ++n) {
        bits = n % 4 == 0 ? random.next() : bits >> 16;
        std::memcpy(piece.data() + at, &table[bits & 0xffff], size);
      }
    });
  };
}

}  // namespace

io::TensorSource random_weights(Format format, std::uint64_t weights, std::uint64_t inputs,
                                std::uint64_t seed) {
  const float deviation = 1.0F / std::sqrt(static_cast<float>(inputs));
  const quant::FormatInfo& f = quant::info(format);
  if (f.kind == quant::FormatClass::kDense) return dense_weights(format, weights, deviation, seed);
  const std::uint64_t blocks = weights / static_cast<std::uint64_t>(f.group);
  const auto size = static_cast<std::size_t>(f.block_bytes);
  return [=](const io::ByteSink& sink) {
    const BlockMaker maker(format, deviation);
    Random random(seed);
    return write_in_pieces(blocks, size, sink, [&](std::span<std::byte> piece) {
      random.fill(piece);
      for (std::size_t at = 0; at < piece.size(); at += size) maker.finish(piece.data() + at);
    });
  };
}

}  // namespace tern::tools
