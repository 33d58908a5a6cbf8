#include "backend/cuda/store/self_tests.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "backend/cuda/core/modules.h"
#include "backend/gpu/pipeline_store/store.h"
#include "base/hash.h"
#include "quant/q1_g128.h"
#include "reference/argmax.h"
#include "reference/packed_product.h"
#include "reference/quantize_i12.h"
#include "reference/rms_norm.h"

namespace tern::cuda {
namespace {

constexpr std::uint32_t kGuard = 0xA5A5A5A5U;

// Memory and launches of one test. Bytes that nobody wrote stay 0xA5.
class Bench {
 public:
  static Result<Bench> make(const std::shared_ptr<Context>& context, const gpu::Pipeline& pipeline,
                            std::uint64_t bytes) {
    TERN_ASSIGN(Stream stream, Stream::make(context));
    TERN_ASSIGN(auto memory, context->allocate(bytes, "a self-test"));
    TERN_TRY(stream.fill(memory->address(), 0xA5, static_cast<std::size_t>(bytes)));
    return Bench(std::move(stream), std::move(memory), pipeline);
  }
  template <class T>
  Result<void> put(std::uint64_t offset, const std::vector<T>& values) {
    TERN_TRY(stream_.copy_to_device(memory_->address() + offset, values.data(),
                                    values.size() * sizeof(T)));
    return stream_.synchronize();  // the values may go now
  }
  template <class T>
  Result<std::vector<T>> get(std::uint64_t offset, std::size_t count) {
    std::vector<T> values(count);
    TERN_TRY(stream_.copy_to_host(values.data(), memory_->address() + offset, count * sizeof(T)));
    TERN_TRY(stream_.synchronize());
    return values;
  }
  Result<void> run(const Launch& launch) {
    for (const gpu::LoadedEntry& entry : pipeline_.entries)
      if (entry.name == info(launch.kernel).entry)
        return cuda::launch(stream_, static_cast<FunctionHandle*>(entry.handle), launch,
                            {memory_->address(), memory_->address(), memory_->address()});
    return fail(ErrorCode::kInternal, "[cuda] the pipeline lacks {}", info(launch.kernel).entry);
  }

 private:
  Bench(Stream stream, std::shared_ptr<const DeviceMemory> memory, const gpu::Pipeline& pipeline)
      : stream_(std::move(stream)), memory_(std::move(memory)), pipeline_(pipeline) {}
  Stream stream_;
  std::shared_ptr<const DeviceMemory> memory_;
  const gpu::Pipeline& pipeline_;
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& v : values) v = normal(random);
  return values;
}

// Blocks of the file's form with scales of either sign around 2^-6.
std::vector<std::byte> random_blocks(std::int64_t rows, std::int64_t inputs, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> blocks(static_cast<std::size_t>(rows * inputs / 128 * 18));
  for (std::size_t at = 0; at < blocks.size(); at += 18) {
    const auto scale = static_cast<std::uint16_t>((random() & 0x83FFU) | 0x2000U);
    std::memcpy(&blocks[at], &scale, 2);
    for (std::size_t i = 2; i < 18; ++i) blocks[at + i] = static_cast<std::byte>(random());
  }
  return blocks;
}

// Compares floats bit by bit (tolerance 0) or relative to the largest expected value, then the
// guards after them.
gpu::SelfTestOutcome outcome(const std::vector<float>& found, const std::vector<float>& expected,
                             double tolerance) {
  gpu::SelfTestOutcome result;
  result.tolerance = tolerance;
  result.digest = sha256_hex(std::as_bytes(std::span(found)));
  double largest = 0;
  for (const float e : expected) largest = std::max(largest, std::fabs(static_cast<double>(e)));
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i >= expected.size()) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &found[i], 4);
      if (bits == kGuard) continue;
      result.detail = fmt::format("element {} beyond the result was written", i);
      result.error = 1;
      return result;
    }
    const bool is_same = std::memcmp(&found[i], &expected[i], 4) == 0;
    const double error =
        is_same ? 0
                : std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i])) /
                      std::max(largest, 1e-30);
    // NaN counts as the largest error, and under tolerance 0 any other bit does.
    const double counted = !(error <= 1e30) ? 1e30 : error == 0 && !is_same ? 1e-30 : error;
    if (counted > result.error) {
      result.error = counted;
      result.detail = fmt::format("element {}: {} instead of {}", i, found[i], expected[i]);
    }
  }
  // A result of zeros would pass for a kernel that did nothing.
  result.passed = result.error <= tolerance && largest > 0;
  if (result.passed) result.detail.clear();
  return result;
}

struct Quantized {
  std::vector<std::int16_t> q;
  std::vector<float> a;
};
Quantized quantized(const std::vector<float>& x) {
  Quantized row{std::vector<std::int16_t>(x.size()), std::vector<float>((x.size() + 127) / 128)};
  reference::quantize_i12(x, row.q, row.a);
  return row;
}

// The record of a row, as params/gemv.h says; what lies between the parts stays a guard.
std::vector<std::byte> record_of(const Quantized& row) {
  const RecordLayout layout = record_layout(static_cast<std::int64_t>(row.q.size()));
  std::vector<std::byte> record(layout.record_bytes, std::byte{0xA5});
  const std::uint64_t groups = layout.scales_offset / kTernPlaneChunkBytes * kTernChunkGroups;
  for (std::uint64_t group = 0; group < groups; ++group) {
    const std::uint64_t chunk = group / kTernChunkGroups;
    const std::uint64_t slot = group % kTernChunkGroups;
    std::int32_t sum = 0;
    for (std::uint64_t t = 0; t < 4; ++t)
      for (std::uint64_t plane = 0; plane < kTernPlanes; ++plane) {
        std::uint32_t word = 0;
        for (std::uint64_t k = 0; k < 32; ++k) {
          const std::uint64_t at = group * 128 + t * 32 + k;
          const int q = at < row.q.size() ? row.q[at] : 0;
          word |= static_cast<std::uint32_t>(q >> plane & 1) << k;
          if (plane == 0) sum += q;
        }
        const std::uint64_t lane =
            plane < 8 ? 8 * (plane % 4) + 4 * (plane / 4) + t : 32 + 4 * (plane - 8) + t;
        std::memcpy(&record[chunk * kTernPlaneChunkBytes + (lane * 4 + slot) * 4], &word, 4);
      }
    const float a = group < row.a.size() ? row.a[group] : 0.0F;
    std::byte* const scales = &record[layout.scales_offset + chunk * kTernScaleChunkBytes];
    std::memcpy(scales + slot * 4, &a, 4);
    std::memcpy(scales + 16 + slot * 4, &sum, 4);
  }
  return record;
}

// 35 x 1,664: ragged tiles, a short last chunk with an odd group, every epilogue.
Result<gpu::SelfTestOutcome> test_gemv(const std::shared_ptr<Context>& context, int cores,
                                       const gpu::Pipeline& pipeline) {
  constexpr std::int64_t kOutputs = 35;
  constexpr std::int64_t kInputs = 1664;
  const auto blocks = random_blocks(kOutputs, kInputs, 1);
  std::vector<std::byte> tiles(tiles16_bytes(kOutputs, kInputs));
  (void)repack_tiles16(blocks.data(), kInputs, kOutputs, tiles.data());
  const Quantized row = quantized(random_values(kInputs, 2));
  const auto bias = random_values(kOutputs, 3);
  const auto residual = random_values(kOutputs, 4);
  TernGemvParams p{};
  const RecordLayout layout = record_layout(kInputs);
  p.records = tiles.size();
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.bias = p.records + layout.record_bytes;
  p.residual = p.bias + 256;
  p.residual_row_stride = 64;
  p.y = p.residual + 256;
  p.y_row_stride = 64;
  p.outputs = kOutputs;
  p.groups = kInputs / 128;
  p.axis = kTernAllRows;
  p.flags = kTernGemvBias | kTernGemvResidual;
  TERN_ASSIGN(Bench bench, Bench::make(context, pipeline, p.y + 256));
  TERN_TRY(bench.put(0, tiles));
  TERN_TRY(bench.put(p.records, record_of(row)));
  TERN_TRY(bench.put(p.bias, bias));
  TERN_TRY(bench.put(p.residual, residual));
  std::vector<float> expected;
  std::vector<std::int8_t> codes(kInputs);
  std::vector<std::int32_t> integers(kInputs / 128);
  std::vector<float> scales(kInputs / 128);
  for (std::size_t n = 0; n < kOutputs; ++n) {
    for (std::size_t g = 0; g < scales.size(); ++g) {
      const std::byte* block = &blocks[(n * scales.size() + g) * 18];
      quant::Q1G128::decode_codes(block, &codes[g * 128]);
      scales[g] = quant::Q1G128::scale(block);
    }
    reference::packed_integers(codes, row.q, 128, integers);
    const float y = reference::packed_product(integers, scales, row.a, 128) + bias[n];
    expected.push_back(residual[n] + y);
  }
  gpu::SelfTestOutcome result;
  for (const KernelId kernel : {KernelId::kGemvQ1G128, KernelId::kGemvQ1G128Deep}) {
    TERN_TRY(bench.run(gemv_launch(p, 1, gemv_geometry(kernel, kOutputs, kInputs, cores))));
    TERN_ASSIGN(const auto found, bench.get<float>(p.y, 64));
    result = outcome(found, expected, 0);  // class E
    if (!result.passed) break;
  }
  return result;
}

Result<gpu::SelfTestOutcome> test_quantize(const std::shared_ptr<Context>& context, int,
                                           const gpu::Pipeline& pipeline) {
  constexpr std::size_t kWidth = 712;  // a short last group
  auto x = random_values(kWidth, 5);
  for (std::size_t k = 128; k < 256; ++k) x[k] = 0;
  x[300] = 1e30F;
  const RecordLayout layout = record_layout(kWidth);
  TernQuantizeParams p{};
  p.x_row_stride = kWidth;
  p.records = 4096;
  p.record_bytes = layout.record_bytes;
  p.scales_offset = layout.scales_offset;
  p.width = kWidth;
  p.axis = kTernAllRows;
  TERN_ASSIGN(Bench bench, Bench::make(context, pipeline, 4096 + layout.record_bytes + 256));
  TERN_TRY(bench.put(0, x));
  TERN_TRY(bench.run(quantize_launch(p, 1)));
  TERN_ASSIGN(const auto found, bench.get<std::byte>(4096, layout.record_bytes + 256));
  auto expected = record_of(quantized(x));
  expected.resize(found.size(), std::byte{0xA5});
  gpu::SelfTestOutcome result;
  result.digest = sha256_hex(found);
  result.passed = found == expected;
  if (!result.passed) {
    const auto at = std::mismatch(found.begin(), found.end(), expected.begin()).first;
    result.error = 1;
    result.detail = fmt::format("byte {} of the record differs", at - found.begin());
  }
  return result;
}

Result<gpu::SelfTestOutcome> test_rms_norm(const std::shared_ptr<Context>& context, int,
                                           const gpu::Pipeline& pipeline) {
  constexpr std::size_t kWidth = 1003;
  const auto x = random_values(kWidth, 6);
  const auto weight = random_values(kWidth, 7);
  TernRmsNormParams p{};
  p.x_row_stride = kWidth;
  p.weight = 4096;
  p.y = 8192;
  p.y_row_stride = kWidth;
  p.width = kWidth;
  p.runs = 1;
  p.eps = 1e-6F;
  p.axis = kTernAllRows;
  TERN_ASSIGN(Bench bench, Bench::make(context, pipeline, 8192 + 4096 + 256));
  TERN_TRY(bench.put(0, x));
  TERN_TRY(bench.put(4096, weight));
  TERN_TRY(bench.run(rms_norm_launch(p, 1)));
  TERN_ASSIGN(const auto found, bench.get<float>(8192, kWidth + 16));
  std::vector<float> expected(kWidth);
  reference::rms_norm(x.data(), weight.data(), kWidth, p.eps, expected.data());
  // Class F of a row reduction: 4 sqrt(1,003) 2^-24 of a value, here of the largest one.
  return outcome(found, expected, (4 * std::sqrt(1003.0) + 4) * 0x1p-24);
}

Result<gpu::SelfTestOutcome> test_embed(const std::shared_ptr<Context>& context, int,
                                        const gpu::Pipeline& pipeline) {
  constexpr std::int64_t kRows = 21;
  constexpr std::int64_t kWidth = 640;
  const auto blocks = random_blocks(kRows, kWidth, 8);
  std::vector<std::byte> tiles(tiles16_bytes(kRows, kWidth));
  (void)repack_tiles16(blocks.data(), kWidth, kRows, tiles.data());
  const std::vector<std::int32_t> ids = {20, 3, 21};
  TernEmbedParams p{};
  p.ids = tiles.size();
  p.status = p.ids + 256;
  p.y = p.status + 256;
  p.y_row_stride = kWidth;
  p.table_rows = kRows;
  p.width = kWidth;
  p.axis = kTernAllRows;
  TERN_ASSIGN(Bench bench, Bench::make(context, pipeline, p.y + 4 * kWidth * 4));
  TERN_TRY(bench.put(0, tiles));
  TERN_TRY(bench.put(p.ids, ids));
  TERN_TRY(bench.put(p.status, std::vector<std::uint32_t>{0}));
  TERN_TRY(bench.run(embed_launch(p, 3)));
  TERN_ASSIGN(const auto found, bench.get<float>(p.y, 4 * kWidth));
  TERN_ASSIGN(const auto status, bench.get<std::uint32_t>(p.status, 1));
  std::vector<float> expected(3 * kWidth, 0.0F);  // the last id is out of range: zeros
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t g = 0; g < kWidth / 128; ++g)
      quant::Q1G128::decode_block(
          &blocks[(static_cast<std::size_t>(ids[r]) * (kWidth / 128) + g) * 18],
          &expected[r * kWidth + g * 128]);
  gpu::SelfTestOutcome result = outcome(found, expected, 0);
  if (status[0] != 1) {
    result.passed = false;
    result.detail = "an id out of range was not reported";
  }
  return result;
}

Result<gpu::SelfTestOutcome> test_gather(const std::shared_ptr<Context>& context, int,
                                         const gpu::Pipeline& pipeline) {
  constexpr std::size_t kWidth = 301;
  const auto x = random_values(kWidth * 3, 9);
  TernGatherParams p{};
  p.x_row_stride = kWidth;
  p.rows = 4096;
  p.y = 4352;
  p.y_row_stride = kWidth;
  p.width = kWidth;
  p.axis = kTernAllRows;
  TERN_ASSIGN(Bench bench, Bench::make(context, pipeline, 4352 + kWidth * 12));
  TERN_TRY(bench.put(0, x));
  TERN_TRY(bench.put(4096, std::vector<std::uint32_t>{2, 0}));
  TERN_TRY(bench.run(gather_launch(p, 2)));
  TERN_ASSIGN(const auto found, bench.get<float>(p.y, kWidth * 3));
  std::vector<float> expected(x.begin() + 2 * kWidth, x.end());
  expected.insert(expected.end(), x.begin(), x.begin() + kWidth);
  return outcome(found, expected, 0);
}

Result<gpu::SelfTestOutcome> test_argmax(const std::shared_ptr<Context>& context, int,
                                         const gpu::Pipeline& pipeline) {
  constexpr std::size_t kWidth = 3001;
  auto x = random_values(kWidth, 10);
  x[2999] = x[1700] = 50;  // a tie across parts
  x[5] = std::nanf("");
  TernArgmaxParams p{};
  p.x_row_stride = kWidth;
  p.parts = 12288;
  p.result = 12544;
  p.width = kWidth;
  p.part_count = 3;
  p.axis = kTernAllRows;
  TERN_ASSIGN(Bench bench, Bench::make(context, pipeline, 12800));
  TERN_TRY(bench.put(0, x));
  TERN_TRY(bench.run(argmax_parts_launch(p, 1)));
  TERN_TRY(bench.run(argmax_merge_launch(p, 1)));
  TERN_ASSIGN(const auto found, bench.get<TernArgmax>(p.result, 1));
  const reference::Argmax expected = reference::argmax(x.data(), 0, kWidth);
  gpu::SelfTestOutcome result;
  result.digest = fmt::format("{} {}", found[0].index, found[0].flags);
  result.passed =
      found[0].index == expected.index && found[0].flags == (kTernArgmaxNan | kTernArgmaxFinite);
  if (!result.passed) {
    result.error = 1;
    result.detail = fmt::format("index {} with flags {}, expected {} with 3", found[0].index,
                                found[0].flags, expected.index);
  }
  return result;
}

struct Row {
  std::string_view stem;
  Result<gpu::SelfTestOutcome> (*run)(const std::shared_ptr<Context>&, int, const gpu::Pipeline&);
};
constexpr Row kTests[] = {{"gemv_q1_g128", test_gemv},  {"quantize", test_quantize},
                          {"rms_norm", test_rms_norm},  {"embed_q1_g128", test_embed},
                          {"gather_rows", test_gather}, {"argmax", test_argmax}};

}  // namespace

gpu::SelfTest self_test_of(std::string_view stem, std::shared_ptr<Context> context, int cores) {
  for (const Row& row : kTests) {
    if (row.stem != stem) continue;
    return {"1",
            [run = row.run, context = std::move(context),
             cores](const gpu::Pipeline& pipeline) -> Result<gpu::SelfTestOutcome> {
              TERN_TRY(context->make_current());
              return run(context, cores, pipeline);
            }};
  }
  return {};
}

}  // namespace tern::cuda
