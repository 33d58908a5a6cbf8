// The packed kernels in portable C++: correct on every machine, read both tilings.
#include "backend/cpu/kernels/packed/reference.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "reference/packed_product.h"
#include "reference/quantize_i12.h"

namespace tern::cpu {
namespace {

constexpr std::int64_t kChunk = 512;   // inputs of one chain of additions
constexpr std::int64_t kRowTile = 64;  // activation rows that share the decoded weights

// Weights of one matrix row in one chunk, as numbers.
struct DecodedChunk {
  std::int8_t codes[kChunk];
  float scales[kChunk / 64];
};

unsigned byte_at(const std::byte* p) { return static_cast<unsigned>(*p); }

unsigned half_word(const std::byte* p) { return byte_at(p) | (byte_at(p + 1) << 8); }

// Code (-1..2) of input k of a group, row r of its 32; `codes` points behind the scales.
int ternary_word_code(const std::byte* codes, std::int64_t k, std::int64_t r) {
  const std::byte* words = codes + k / 64 * (7 * 64) + 2 * r;
  const std::int64_t in_half = k % 64;
  if (in_half == 63) {
    return static_cast<int>(half_word(words) >> 15) - static_cast<int>(half_word(words + 64) >> 15);
  }
  constexpr unsigned kPowers[3] = {1, 3, 9};
  const unsigned index = half_word(words + in_half / 9 * 64) >> (in_half % 9 / 3 * 5);
  return static_cast<int>((index & 31) / kPowers[in_half % 3] % 3) - 1;
}

unsigned plane_bit(const PackedView& w, const std::byte* codes, int planes, int which,
                   std::int64_t k, std::int64_t r) {
  const std::int64_t byte =
      w.tiling == PackedTiling::kBytes
          ? (k / 8 * planes + which) * kPackedBlockRows + r
          : (k / 16 * planes + which) * 2 * kPackedBlockRows + 2 * r + k / 8 % 2;
  return (byte_at(codes + byte) >> (k % 8)) & 1;
}

int code_at(const PackedView& w, const std::byte* codes, std::int64_t k, std::int64_t r) {
  if (w.kind == PackedKind::kBinary) {
    return plane_bit(w, codes, 1, 0, k, r) != 0 ? 1 : -1;
  }
  if (w.kind == PackedKind::kTernary && w.tiling == PackedTiling::kWords) {
    return ternary_word_code(codes, k, r);
  }
  const auto first = static_cast<int>(plane_bit(w, codes, 2, 0, k, r));
  const auto second = static_cast<int>(plane_bit(w, codes, 2, 1, k, r));
  return w.kind == PackedKind::kTernary ? first - second : first + 2 * second - 1;
}

float scale_at(const PackedView& w, const std::byte* group, std::int64_t r) {
  const std::int64_t place =
      w.tiling == PackedTiling::kWords ? r % 2 * 16 + r / 2 : r % 16 / 4 * 8 + r / 16 * 4 + r % 4;
  return half_to_float(static_cast<std::uint16_t>(half_word(group + 2 * place)));
}

std::int64_t chunk_groups(const PackedView& w, std::int64_t chunk) {
  const std::int64_t left = w.groups - chunk * (kChunk / w.group);
  return left < kChunk / w.group ? left : kChunk / w.group;
}

void decode_chunk(const PackedView& w, std::int64_t row, std::int64_t chunk, DecodedChunk& out) {
  const std::int64_t r = row % kPackedBlockRows;
  const std::byte* group = w.data + row / kPackedBlockRows * w.row_block_bytes +
                           chunk * (kChunk / w.group) * w.group_bytes;
  const std::int64_t groups = chunk_groups(w, chunk);
  for (std::int64_t g = 0; g < groups; ++g, group += w.group_bytes) {
    out.scales[g] = scale_at(w, group, r);
    for (std::int64_t k = 0; k < w.group; ++k) {
      const std::byte* codes = group + 2 * kPackedBlockRows;
      out.codes[g * w.group + k] = static_cast<std::int8_t>(code_at(w, codes, k, r));
    }
  }
}

// The sum of one chunk in the canonical order.
float exact_chunk(const PackedView& w, const RecordsView& records, std::int64_t row,
                  std::int64_t chunk, const DecodedChunk& weights) {
  const std::byte* record = records.data + row * records.record_bytes;
  const auto* q = reinterpret_cast<const std::int16_t*>(record + records.q_offset) + chunk * kChunk;
  const auto* a = reinterpret_cast<const float*>(record + records.scales_offset) + chunk * 4;
  const auto groups = static_cast<std::size_t>(chunk_groups(w, chunk));
  const auto group = static_cast<std::size_t>(w.group);
  std::int32_t integers[kChunk / 64] = {};
  reference::packed_integers({weights.codes, groups * group}, {q, groups * group}, group,
                             {integers, groups});
  return reference::packed_product({integers, groups}, {weights.scales, groups},
                                   {a, (groups * group + 127) / 128}, group);
}

float float_chunk(const PackedView& w, const float* x, std::int64_t chunk,
                  const DecodedChunk& weights) {
  const std::int64_t groups = chunk_groups(w, chunk);
  float total = 0.0f;
  for (std::int64_t g = 0; g < groups; ++g) {
    float sum = 0.0f;
    for (std::int64_t k = g * w.group; k < (g + 1) * w.group; ++k) {
      sum += static_cast<float>(weights.codes[k]) * x[chunk * kChunk + k];
    }
    total += sum * weights.scales[g];
  }
  return total;
}

template <class ChunkSum>
void matmul(const PackedMatmulArgs& args, ChunkSum chunk_sum) {
  const PackedView& w = args.weights;
  const std::int64_t n_begin = args.block_begin * kPackedBlockRows;
  const std::int64_t n_stop = args.block_end * kPackedBlockRows;
  const std::int64_t n_end = n_stop < w.rows ? n_stop : w.rows;
  const std::int64_t chunks = (w.inputs + kChunk - 1) / kChunk;
  DecodedChunk decoded;
  float sums[kRowTile];
  for (std::int64_t first = 0; first < args.rows; first += kRowTile) {
    const std::int64_t count = args.rows - first < kRowTile ? args.rows - first : kRowTile;
    for (std::int64_t n = n_begin; n < n_end; ++n) {
      for (float& sum : sums) sum = 0.0f;
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        decode_chunk(w, n, chunk, decoded);
        for (std::int64_t m = 0; m < count; ++m) {
          const float sum = chunk_sum(first + m, chunk, decoded);
          sums[m] = chunk == 0 ? sum : sums[m] + sum;
        }
      }
      for (std::int64_t m = 0; m < count; ++m) {
        const std::int64_t row = first + m;
        args.y[row * args.y_stride + n] =
            args.residual == nullptr ? sums[m]
                                     : args.residual[row * args.residual_stride + n] + sums[m];
      }
    }
  }
}

}  // namespace

void reference_quantize(const QuantizeArgs& args) {
  const RecordsView& records = args.records;
  const auto inputs = static_cast<std::size_t>(records.inputs);
  const std::size_t groups = (inputs + 127) / 128;
  for (std::int64_t row = args.row_begin; row < args.row_end; ++row) {
    std::byte* record = records.data + row * records.record_bytes;
    auto* q = reinterpret_cast<std::int16_t*>(record + records.q_offset);
    auto* a = reinterpret_cast<float*>(record + records.scales_offset);
    auto* sums = reinterpret_cast<std::int32_t*>(record + records.sums_offset);
    std::memset(q, 0, groups * 128 * sizeof(*q));
    reference::quantize_i12({args.x + row * args.x_stride, inputs}, {q, inputs}, {a, groups});
    for (std::size_t half = 0; half < groups * 2; ++half) {
      sums[half] = 0;
      for (std::size_t k = half * 64; k < half * 64 + 64; ++k) sums[half] += q[k];
    }
  }
}

void reference_matmul(const PackedMatmulArgs& args) {
  matmul(args, [&args](std::int64_t row, std::int64_t chunk, const DecodedChunk& weights) {
    return exact_chunk(args.weights, args.records, row, chunk, weights);
  });
}

void reference_matmul_f32(const PackedMatmulArgs& args) {
  matmul(args, [&args](std::int64_t row, std::int64_t chunk, const DecodedChunk& weights) {
    return float_chunk(args.weights, args.x + row * args.x_stride, chunk, weights);
  });
}

void reference_decode_row(const PackedView& w, std::int64_t row, float* out) {
  const std::int64_t chunks = (w.inputs + kChunk - 1) / kChunk;
  DecodedChunk decoded;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    decode_chunk(w, row, chunk, decoded);
    const std::int64_t count = chunk_groups(w, chunk) * w.group;
    for (std::int64_t k = 0; k < count; ++k) {
      out[chunk * kChunk + k] = static_cast<float>(decoded.codes[k]) * decoded.scales[k / w.group];
    }
  }
}

}  // namespace tern::cpu
