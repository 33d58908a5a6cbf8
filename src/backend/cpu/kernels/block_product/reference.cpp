// block_product in portable code: the contract's sums, output by output, on the packed layout.
#include <cmath>
#include <cstring>

#include "backend/cpu/kernels/block_product/kernels.h"
#include "base/half.h"

namespace tern::cpu {
namespace {

constexpr int kGroup = 128;
constexpr float kLargest = 2047;

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
template <class T>
void store(std::byte* bytes, T value) {
  std::memcpy(bytes, &value, sizeof value);
}

// Stored place of input i: each four in the order 0 2 1 3.
constexpr std::int64_t stored(std::int64_t i) {
  return i / 4 * 4 + (i % 4 == 1 ? 2 : i % 4 == 2 ? 1 : i % 4);
}

struct GroupScale {
  float a;  // NaN: the group holds NaN or Inf
  float r;  // 0: all q are 0
};

GroupScale group_scale(const float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(x[i])) return {std::nanf(""), 0};
    largest = std::fmax(largest, std::fabs(x[i]));
  }
  if (largest < 0x1p-100F) return {0, 0};
  return {largest / kLargest, kLargest / largest};
}

void quantize_row(const float* x, std::int64_t inputs, std::byte* row) {
  const BlockActivationOffsets at = block_activation_offsets(inputs);
  for (std::int64_t block = 0; block < inputs / kBlockInputs; ++block) {
    const std::int64_t group = block * kBlockInputs / kGroup * kGroup;
    const GroupScale scale =
        group_scale(x + group, inputs - group < kGroup ? inputs - group : kGroup);
    std::int32_t sum = 0;
    for (std::int64_t i = block * kBlockInputs; i < (block + 1) * kBlockInputs; ++i) {
      int q = 0;
      if (scale.r != 0) {
        const float scaled = std::nearbyint(x[i] * scale.r);
        q = static_cast<int>(std::fmin(std::fmax(scaled, -kLargest), kLargest));
      }
      sum += q;
      store(row + 2 * stored(i), static_cast<std::int16_t>(q));
      store(row + at.hi + i, static_cast<std::int8_t>(q >> 4));
      store(row + at.lo + i, static_cast<std::uint8_t>(q & 15));
    }
    store(row + at.scale + 4 * block, scale.a);
    store(row + at.scaled_sum + 4 * block, scale.a * static_cast<float>(sum));
    store(row + at.sum + 4 * block, sum);
  }
}

// Integer dot product of one row's codes with 32 stored activations.
std::int32_t dot_codes(const BlockMatrix& w, const std::byte* codes, int row, const std::byte* q,
                       std::int32_t sum) {
  std::int32_t total = 0;
  for (int i = 0; i < kBlockInputs; ++i) {
    const int activation = load<std::int16_t>(q + 2 * stored(i));
    if (w.format == quant::Format::kQ8_0) {
      const int vector = i / 4 * 2 + i % 2;
      total += activation * std::to_integer<std::int8_t>(codes[vector * 16 + 2 * row + i % 4 / 2]);
      continue;
    }
    const int byte = std::to_integer<int>(codes[i % 16 / 4 * 32 + 4 * row + i % 4]);
    total += activation * (i < 16 ? byte & 15 : byte >> 4);
  }
  return w.format == quant::Format::kQ4_0 ? total - 8 * sum : total;
}

void write(const BlockProductArgs& args, int row, std::int64_t n, float sum) {
  if (args.bias != nullptr) sum = sum + args.bias[n];
  if (args.residual != nullptr) sum = args.residual[row * args.residual_row_stride + n] + sum;
  args.y[row * args.y_row_stride + n] = sum;
}

}  // namespace

void block_quantize_reference(const float* x, std::int64_t x_row_stride,
                              const BlockActivations& out, int row_begin, int row_end) {
  const std::int64_t row_bytes = block_activation_offsets(out.inputs).row_bytes;
  for (int r = row_begin; r < row_end; ++r) {
    quantize_row(x + r * x_row_stride, out.inputs, out.data + r * row_bytes);
  }
}

void block_product_reference(const BlockProductArgs& args, int row_begin, int row_end,
                             std::int64_t block_begin, std::int64_t block_end) {
  const BlockMatrix& w = args.w;
  const BlockShape shape = block_shape(w.format);
  const BlockActivationOffsets at = block_activation_offsets(w.inputs);
  const std::int64_t blocks = w.inputs / kBlockInputs;
  for (int r = row_begin; r < row_end; ++r) {
    const std::byte* x = args.x.data + r * at.row_bytes;
    for (std::int64_t n = block_begin * kBlockRows; n < block_end * kBlockRows && n < w.outputs;
         ++n) {
      const int row = static_cast<int>(n % kBlockRows);
      float acc = 0;
      float minimum = 0;
      for (std::int64_t k = 0; k < blocks; ++k) {
        const std::byte* block = w.data + (n / kBlockRows * blocks + k) * shape.bytes;
        const std::int32_t dot = dot_codes(w, block + shape.codes, row, x + 2 * kBlockInputs * k,
                                           load<std::int32_t>(x + at.sum + 4 * k));
        const float d = half_to_float(load<std::uint16_t>(block + 2 * row));
        acc = std::fmaf(static_cast<float>(dot), d * load<float>(x + at.scale + 4 * k), acc);
        if (shape.has_minimum) {
          const float m = half_to_float(load<std::uint16_t>(block + 16 + 2 * row));
          minimum = std::fmaf(m, load<float>(x + at.scaled_sum + 4 * k), minimum);
        }
      }
      write(args, r, n, shape.has_minimum ? acc + minimum : acc);
    }
  }
}

// f64 sums of the decoded weights.
void block_product_f32_reference(const BlockProductArgs& args, int row_begin, int row_end,
                                 std::int64_t block_begin, std::int64_t block_end) {
  const BlockMatrix& w = args.w;
  const std::int64_t blocks = w.inputs / kBlockInputs;
  for (std::int64_t n = block_begin * kBlockRows; n < block_end * kBlockRows && n < w.outputs;
       ++n) {
    for (int r = row_begin; r < row_end; ++r) {
      const float* x = args.x_f32 + r * args.x_f32_row_stride;
      double sum = 0;
      for (std::int64_t k = 0; k < blocks; ++k) {
        // One block of the row as a matrix of its own: 8 outputs, 32 inputs.
        const std::byte* block =
            w.data + (n / kBlockRows * blocks + k) * block_shape(w.format).bytes;
        const BlockMatrix part{w.format, kBlockRows, kBlockInputs, block};
        const auto id = static_cast<std::int32_t>(n % kBlockRows);
        float decoded[kBlockInputs];
        (void)block_embed(part, &id, decoded, kBlockInputs, 0, 1);
        for (int i = 0; i < kBlockInputs; ++i) {
          sum += static_cast<double>(decoded[i]) * static_cast<double>(x[k * kBlockInputs + i]);
        }
      }
      write(args, r, n, static_cast<float>(sum));
    }
  }
}

}  // namespace tern::cpu
