// From the blocks of a file to 32 interleaved rows: decode 128 codes of 32 rows, encode them in the
// tiling.
#include <array>
#include <bit>
#include <cstring>

#include "backend/cpu/kernels/packed/packed.h"
#include "base/error.h"

namespace tern::cpu {
namespace {

using quant::Format;

static_assert(std::endian::native == std::endian::little,
              "scales and bit planes are little endian");

constexpr int kRows = kPackedBlockRows;
constexpr int kMaxBlockBytes = 66;
constexpr int kMaxGroupBytes = 64 + 2 * 512;

// Where the code of weight k lies in a block: a byte, and the digit in it (2-bit field or base-3
// digit).
struct CodePlace {
  int byte;
  int digit;
};

struct SourceCodec {
  Format format;
  bool base3;
  int scale_byte;
  CodePlace (*place)(int weight);
};

CodePlace place_scale_first(int k) { return {2 + k / 4, k % 4}; }

CodePlace place_t2_g256(int k) { return {k / 128 * 32 + k % 32, k / 32 % 4}; }

CodePlace place_t1_g128(int k) {
  if (k < 80) return {k % 16, k / 16};
  if (k < 120) return {16 + k % 8, (k - 80) / 8};
  return {24 + k % 2, (k - 120) / 2};
}

CodePlace place_t1_g256(int k) {
  if (k < 160) return {k % 32, k / 32};
  if (k < 240) return {32 + k % 16, (k - 160) / 16};
  return {48 + k % 4, (k - 240) / 4};
}

constexpr std::array<SourceCodec, 6> kCodecs = {{
    {Format::kQ1G128, false, 0, nullptr},
    {Format::kT2G64, false, 0, place_scale_first},
    {Format::kT2G128, false, 0, place_scale_first},
    {Format::kT2G256, false, 64, place_t2_g256},
    {Format::kT1G128, true, 26, place_t1_g128},
    {Format::kT1G256, true, 52, place_t1_g256},
}};

const SourceCodec& codec_of(Format format) {
  for (const SourceCodec& c : kCodecs) {
    if (c.format == format) return c;
  }
  TERN_ASSERT(false);
  return kCodecs[0];
}

// A byte of each of the 32 rows; byte r of the array belongs to row r. Arithmetic is on eight rows
// at a time.
using RowBytes = std::array<std::uint64_t, kRows / 8>;
constexpr std::uint64_t kEach =
    0x0101010101010101u;  // times a byte: that byte for each of eight rows

// One group of up to 32 rows on its way: bytes as in the file; codes 0..3; then the packed form.
struct Tile {
  alignas(64) std::array<RowBytes, kMaxBlockBytes> raw;
  alignas(64) std::array<RowBytes, 128> code;
  alignas(64) std::array<std::byte, kMaxGroupBytes> packed;
};

std::byte* row_bytes(RowBytes& rows) { return reinterpret_cast<std::byte*>(rows.data()); }
const std::byte* row_bytes(const RowBytes& rows) {
  return reinterpret_cast<const std::byte*>(rows.data());
}

bool is_finite_half(unsigned bits) { return (bits & 0x7c00u) != 0x7c00u; }
bool is_nan_half(unsigned bits) { return !is_finite_half(bits) && (bits & 0x3ffu) != 0; }

unsigned read_half(const std::byte* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, 2);
  return bits;
}

// Byte b of word r becomes byte r of word b.
void transpose_8x8(std::array<std::uint64_t, 8>& x) {
  const auto exchange = [&x](std::size_t distance, int bits, std::uint64_t mask) {
    for (std::size_t i = 0; i < 8; ++i) {
      if ((i & distance) != 0) continue;
      const std::uint64_t t = ((x[i] >> bits) ^ x[i + distance]) & mask;
      x[i + distance] ^= t;
      x[i] ^= t << bits;
    }
  };
  exchange(4, 32, 0x00000000ffffffffu);
  exchange(2, 16, 0x0000ffff0000ffffu);
  exchange(1, 8, 0x00ff00ff00ff00ffu);
}

// The base-3 digit after `power`: ((b * power) mod 256) * 3 >> 8, in lanes of 16 bits.
std::uint64_t digits_of(std::uint64_t bytes, std::uint64_t power) {
  constexpr std::uint64_t kLow = 0x00ff00ff00ff00ffu;
  const std::uint64_t even = (((((bytes & kLow) * power) & kLow) * 3) >> 8) & kLow;
  const std::uint64_t odd = ((((((bytes >> 8) & kLow) * power) & kLow) * 3) >> 8) & kLow;
  return even | (odd << 8);
}

// Fills tile.code from the blocks in tile.raw; weight k is at places[k].
void decode_codes(bool base3, const CodePlace* places, int group, Tile& tile) {
  constexpr std::array<std::uint64_t, 5> kPowers = {1, 3, 9, 27, 81};
  for (int k = 0; k < group; ++k) {
    const CodePlace place = places[k];
    const RowBytes& in = tile.raw[static_cast<std::size_t>(place.byte)];
    RowBytes& out = tile.code[static_cast<std::size_t>(k)];
    if (base3) {
      const std::uint64_t power = kPowers[static_cast<std::size_t>(place.digit)];
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = digits_of(in[i], power);
    } else {
      const int shift = 2 * place.digit;
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = (in[i] >> shift) & (3 * kEach);
    }
  }
}

// Where the scale of row r stands among the 32: in the order of the vectors that the kernels hold.
std::size_t scale_place(PackedTiling tiling, int r) {
  if (tiling == PackedTiling::kWords) return static_cast<std::size_t>(r % 2 * 16 + r / 2);
  return static_cast<std::size_t>(r % 16 / 4 * 8 + r / 16 * 4 + r % 4);
}

// Writes eight inputs of one plane: 32 bytes in kBytes; every second byte of 32 words in kWords.
void put_plane(PackedTiling tiling, const RowBytes& plane, int step, int planes, int which,
               std::byte* codes) {
  if (tiling == PackedTiling::kBytes) {
    std::memcpy(codes + (step * planes + which) * kRows, plane.data(), kRows);
    return;
  }
  std::byte* out = codes + (step / 2 * planes + which) * 2 * kRows + step % 2;
  const std::byte* in = row_bytes(plane);
  for (std::size_t r = 0; r < kRows; ++r) out[2 * r] = in[r];
}

// Planes of +1 and -1 (codes 2 and 0), or the two bits of the codes.
template <PackedKind K>
void encode_planes(PackedTiling tiling, int group, Tile& tile) {
  std::byte* codes = tile.packed.data() + 2 * kRows;
  for (int step = 0; step < group / 8; ++step) {
    RowBytes first{};
    RowBytes second{};
    for (int j = 0; j < 8; ++j) {
      const RowBytes& code = tile.code[static_cast<std::size_t>(step * 8 + j)];
      for (std::size_t i = 0; i < first.size(); ++i) {
        const std::uint64_t low = code[i];
        const std::uint64_t high = code[i] >> 1;
        constexpr bool kTernary = K == PackedKind::kTernary;
        first[i] |= ((kTernary ? high & ~low : low) & kEach) << j;
        second[i] |= ((kTernary ? ~(high | low) : high) & kEach) << j;
      }
    }
    put_plane(tiling, first, step, 2, 0, codes);
    put_plane(tiling, second, step, 2, 1, codes);
  }
}

// Per 64 inputs seven words: three times three digits c0 + 3 c1 + 9 c2 in five bits each. Input 63
// is in the top bits: +1 in word 0, -1 in word 1.
void encode_ternary_words(int group, Tile& tile) {
  std::byte* out = tile.packed.data() + 2 * kRows;
  for (int half = 0; half < group / 64; ++half) {
    const RowBytes& last = tile.code[static_cast<std::size_t>(half * 64 + 63)];
    for (int word = 0; word < 7; ++word, out += 2 * kRows) {
      const RowBytes* code = &tile.code[static_cast<std::size_t>(half * 64 + word * 9)];
      RowBytes low;
      RowBytes high;
      for (std::size_t i = 0; i < low.size(); ++i) {
        const auto digit = [&](std::size_t k) {  // below 32: at most 26, or 39 where a code is 3
          return (code[k][i] + 3 * code[k + 1][i] + 9 * code[k + 2][i]) & (31 * kEach);
        };
        const std::uint64_t middle = digit(3);
        low[i] = digit(0) | ((middle & (7 * kEach)) << 5);
        high[i] = ((middle >> 3) & (3 * kEach)) | (digit(6) << 2);
        const std::uint64_t plus = (last[i] >> 1) & ~last[i];
        const std::uint64_t minus = ~((last[i] >> 1) | last[i]);
        if (word == 0) high[i] |= (plus & kEach) << 7;
        if (word == 1) high[i] |= (minus & kEach) << 7;
      }
      for (std::size_t r = 0; r < kRows; ++r) {
        out[2 * r] = row_bytes(low)[r];
        out[2 * r + 1] = row_bytes(high)[r];
      }
    }
  }
}

// Binary: the bytes of the file are the bytes of the planes.
void encode_binary(PackedTiling tiling, Tile& tile) {
  std::byte* codes = tile.packed.data() + 2 * kRows;
  for (int step = 0; step < 16; ++step) {
    put_plane(tiling, tile.raw[static_cast<std::size_t>(2 + step)], step, 1, 0, codes);
  }
}

class Repacker {
 public:
  Repacker(const PackedLayout& layout, const PackedSource& source)
      : layout_(layout),
        source_(source),
        codec_(codec_of(source.format)),
        format_(quant::info(source.format)),
        blocks_per_row_(source.inputs / format_.group) {
    if (codec_.place == nullptr) return;
    for (int k = 0; k < format_.group; ++k) places_[static_cast<std::size_t>(k)] = codec_.place(k);
  }

  // Rows first..first+count-1 of the source become rows r0.. of the packed row block `out`; pad_to:
  // rows up to there get scale 0.
  void row_block(std::int64_t first, int count, int r0, int pad_to, std::byte* out) {
    const int per_block = format_.group / layout_.group;
    for (std::int64_t g = 0; g < layout_.groups(); ++g, out += layout_.group_bytes()) {
      const std::int64_t block = g / per_block;
      read(first, count, block);
      if (layout_.kind == PackedKind::kBinary) {
        encode_binary(layout_.tiling, tile_);
      } else {
        decode_codes(codec_.base3, places_.data() + g % per_block * layout_.group, layout_.group,
                     tile_);
        if (!codec_.base3) note_code3(count);
        encode();
      }
      put_scales(first, count, block);
      write(count, r0, pad_to, out);
    }
  }

  [[nodiscard]] const PackedScan& scan() const { return scan_; }

 private:
  // The bytes of `count` rows of one block, transposed; eight rows and eight bytes at a time where
  // there are as many.
  void read(std::int64_t first, int count, std::int64_t block) {
    const std::byte* row = source_.data + first * source_.row_bytes + block * format_.block_bytes;
    const auto bytes = static_cast<std::size_t>(format_.block_bytes);
    for (int r = 0; r < count; r += 8, row += 8 * source_.row_bytes) {
      std::size_t done = 0;
      if (count - r >= 8) {
        for (; done + 8 <= bytes; done += 8) {
          std::array<std::uint64_t, 8> words;
          for (int i = 0; i < 8; ++i) {
            std::memcpy(&words[static_cast<std::size_t>(i)],
                        row + i * source_.row_bytes + static_cast<std::ptrdiff_t>(done), 8);
          }
          transpose_8x8(words);
          for (std::size_t i = 0; i < 8; ++i) {
            tile_.raw[done + i][static_cast<std::size_t>(r / 8)] = words[i];
          }
        }
      }
      const int left = count - r < 8 ? count - r : 8;
      for (int i = 0; i < left; ++i) {
        for (std::size_t b = done; b < bytes; ++b) {
          row_bytes(tile_.raw[b])[r + i] =
              row[i * source_.row_bytes + static_cast<std::ptrdiff_t>(b)];
        }
      }
    }
  }

  void encode() {
    if (layout_.kind == PackedKind::kCodes) {
      encode_planes<PackedKind::kCodes>(layout_.tiling, layout_.group, tile_);
    } else if (layout_.tiling == PackedTiling::kBytes) {
      encode_planes<PackedKind::kTernary>(layout_.tiling, layout_.group, tile_);
    } else {
      encode_ternary_words(layout_.group, tile_);
    }
  }

  void note_code3(int count) {
    RowBytes found{};
    for (int k = 0; k < layout_.group; ++k) {
      const RowBytes& code = tile_.code[static_cast<std::size_t>(k)];
      for (std::size_t i = 0; i < found.size(); ++i) found[i] |= code[i] & (code[i] >> 1);
    }
    for (int r = 0; r < count; ++r) {
      if ((row_bytes(found)[r] & std::byte{1}) != std::byte{0}) scan_.has_code3 = true;
    }
  }

  void put_scales(std::int64_t first, int count, std::int64_t block) {
    const auto at = static_cast<std::size_t>(codec_.scale_byte);
    for (int r = 0; r < count; ++r) {
      const auto row = static_cast<std::size_t>(r);
      const auto low = static_cast<unsigned>(row_bytes(tile_.raw[at])[r]);
      const auto high = static_cast<unsigned>(row_bytes(tile_.raw[at + 1])[r]);
      const auto bits = static_cast<std::uint16_t>(low | (high << 8));
      std::memcpy(tile_.packed.data() + 2 * row, &bits, 2);
      if (!is_finite_half(bits)) note_bad((first + r) * blocks_per_row_ + block, is_nan_half(bits));
    }
  }

  void note_bad(std::int64_t block, bool is_nan) {
    scan_ = scan_.merged({.has_code3 = false, .bad_block = block, .bad_is_nan = is_nan});
  }

  // Tile rows 0..count-1 (scales in row order there) to rows r0.. of the group at out.
  void write(int count, int r0, int pad_to, std::byte* out) {
    const std::byte* codes = tile_.packed.data() + 2 * kRows;
    const auto code_bytes = static_cast<std::int64_t>(layout_.group_bytes()) - 2 * kRows;
    std::byte* out_codes = out + 2 * kRows;
    for (int r = 0; r < count; ++r) {
      std::memcpy(out + 2 * scale_place(layout_.tiling, r0 + r), tile_.packed.data() + 2 * r, 2);
    }
    if (count == kRows) {
      std::memcpy(out_codes, codes, static_cast<std::size_t>(code_bytes));
      return;
    }
    const std::int64_t width = layout_.tiling == PackedTiling::kWords ? 2 : 1;  // bytes per row
    for (std::int64_t v = 0; v < code_bytes; v += kRows * width) {
      std::memcpy(out_codes + v + r0 * width, codes + v, static_cast<std::size_t>(count * width));
      if (pad_to > r0 + count) {
        std::memset(out_codes + v + (r0 + count) * width, 0,
                    static_cast<std::size_t>((pad_to - r0 - count) * width));
      }
    }
    for (int r = r0 + count; r < pad_to; ++r) {
      std::memset(out + 2 * scale_place(layout_.tiling, r), 0, 2);
    }
  }

  const PackedLayout& layout_;
  const PackedSource& source_;
  const SourceCodec& codec_;
  const quant::FormatInfo& format_;
  std::int64_t blocks_per_row_;
  std::array<CodePlace, 256> places_ = {};
  PackedScan scan_;
  Tile tile_ = {};
};

// Whether one of `bytes` bytes of 2-bit codes holds a 3.
bool any_code3(const std::byte* p, int bytes) {
  std::uint64_t found = 0;
  int i = 0;
  for (; i + 8 <= bytes; i += 8) {
    std::uint64_t x;
    std::memcpy(&x, p + i, 8);
    found |= x & (x >> 1) & 0x5555555555555555u;
  }
  return found != 0;  // code bytes of all formats are multiples of 8
}

}  // namespace

PackedScan PackedScan::merged(const PackedScan& other) const {
  PackedScan result = *this;
  result.has_code3 = has_code3 || other.has_code3;
  if (other.bad_block >= 0 && (bad_block < 0 || other.bad_block < bad_block)) {
    result.bad_block = other.bad_block;
    result.bad_is_nan = other.bad_is_nan;
  }
  return result;
}

PackedScan scan_packed(const PackedSource& source, std::int64_t row_begin, std::int64_t row_count) {
  const SourceCodec& codec = codec_of(source.format);
  const quant::FormatInfo& format = quant::info(source.format);
  const bool two_bit = source.format != Format::kQ1G128 && !codec.base3;
  const std::int64_t blocks = source.inputs / format.group;
  PackedScan scan;
  for (std::int64_t row = row_begin; row < row_begin + row_count; ++row) {
    const std::byte* p = source.data + row * source.row_bytes;
    for (std::int64_t b = 0; b < blocks; ++b, p += format.block_bytes) {
      const unsigned scale = read_half(p + codec.scale_byte);
      if (!is_finite_half(scale) && scan.bad_block < 0) {
        scan.bad_block = row * blocks + b;
        scan.bad_is_nan = is_nan_half(scale);
      }
      if (two_bit && any_code3(p + (codec.scale_byte == 0 ? 2 : 0), format.block_bytes - 2)) {
        scan.has_code3 = true;
      }
    }
  }
  return scan;
}

PackedScan repack(const PackedLayout& layout, const PackedSource& source, std::int64_t row_begin,
                  std::int64_t row_count, std::byte* destination, std::int64_t destination_row) {
  TERN_ASSERT(source.inputs == layout.inputs);
  TERN_ASSERT(quant::info(source.format).group % layout.group == 0);
  TERN_ASSERT(destination_row >= 0 && row_count >= 0 && destination_row + row_count <= layout.rows);
  Repacker repacker(layout, source);
  const std::int64_t end = destination_row + row_count;
  const auto row_block_bytes = layout.groups() * static_cast<std::int64_t>(layout.group_bytes());
  for (std::int64_t row = destination_row; row < end;) {
    const std::int64_t block = row / kRows;
    const auto r0 = static_cast<int>(row % kRows);
    const std::int64_t stop = (block + 1) * kRows < end ? (block + 1) * kRows : end;
    const auto count = static_cast<int>(stop - row);
    const int pad_to = stop == layout.rows ? kRows : r0 + count;
    repacker.row_block(row_begin + (row - destination_row), count, r0, pad_to,
                       destination + block * row_block_bytes);
    row = stop;
  }
  return repacker.scan();
}

}  // namespace tern::cpu
