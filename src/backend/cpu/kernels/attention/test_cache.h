// A paged cache with random keys and values for the tests and benchmarks of attention.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "backend/cpu/kernels/attention/attention.h"
#include "base/half.h"

namespace tern::cpu::testing {

// One sequence of `positions` positions whose pages lie in random order among others. Everything
// that the sequence does not own, and what follows its last position, is NaN.
class TestCache {
 public:
  TestCache(KvDtype k, KvDtype v, int kv_heads, int head_dim, int positions, std::uint32_t seed)
      : positions_(positions), random_(seed) {
    const int used = (positions + kKvPagePositions - 1) / kKvPagePositions;
    const int all = used + 3;
    const std::uint64_t k_bytes = kv_page_bytes(k, kv_heads, head_dim);
    const std::uint64_t stride = k_bytes + kv_page_bytes(v, kv_heads, head_dim) + 64;
    memory_.assign(static_cast<std::size_t>(stride) * static_cast<std::size_t>(all) / 4 + 16,
                   std::bit_cast<float>(0x7FFF7FFFU));  // NaN as one float and as two halves
    auto base = reinterpret_cast<std::uintptr_t>(memory_.data());
    base = (base + 31) / 32 * 32;
    auto* bytes = reinterpret_cast<std::byte*>(memory_.data()) +
                  (base - reinterpret_cast<std::uintptr_t>(memory_.data()));
    view_ = {bytes, bytes + k_bytes, stride, k, v, kv_heads, head_dim};
    bytes_ = static_cast<std::size_t>(stride) * static_cast<std::size_t>(all);
    for (int i = 0; i < all; ++i) pages_.push_back(static_cast<std::uint32_t>(i));
    std::shuffle(pages_.begin(), pages_.end(), random_);
    pages_.resize(static_cast<std::size_t>(used));
    std::normal_distribution<float> normal(0, 1);
    for (int t = 0; t < positions; ++t) {
      for (int h = 0; h < kv_heads; ++h) {
        for (int d = 0; d < head_dim; ++d) {
          set(true, t, h, d, normal(random_));
          set(false, t, h, d, normal(random_));
        }
      }
    }
  }
  TestCache(const TestCache&) = delete;
  TestCache& operator=(const TestCache&) = delete;

  void set(bool is_key, int position, int head, int d, float value) {
    const KvDtype dtype = is_key ? view_.dtype_k : view_.dtype_v;
    const std::size_t i = static_cast<std::size_t>(
        (head * kKvPagePositions + position % kKvPagePositions) * view_.head_dim + d);
    std::byte* to =
        (is_key ? view_.k_base : view_.v_base) +
        pages_[static_cast<std::size_t>(position / kKvPagePositions)] * view_.page_stride_bytes +
        i * kv_element_bytes(dtype);
    const std::uint16_t half = float_to_half(value);
    if (dtype == KvDtype::kF32) {
      std::memcpy(to, &value, sizeof value);
    } else {
      std::memcpy(to, &half, sizeof half);
    }
  }

  [[nodiscard]] const KvView& view() const { return view_; }
  // All pages, from view().k_base on.
  [[nodiscard]] std::span<const std::byte> memory() const { return {view_.k_base, bytes_}; }
  [[nodiscard]] const std::uint32_t* pages() const { return pages_.data(); }
  [[nodiscard]] int positions() const { return positions_; }

 private:
  int positions_;
  std::mt19937 random_;
  std::vector<float> memory_;
  std::vector<std::uint32_t> pages_;
  KvView view_;
  std::size_t bytes_ = 0;
};

// Rows of one sequence at ascending positions, run in either form.
struct AttentionRun {
  AttentionRun(const TestCache& cache, int heads, int first_position, int rows)
      : row_pages(static_cast<std::size_t>(rows), cache.pages()) {
    for (int r = 0; r < rows; ++r) positions.push_back(first_position + r);
    args.kv = cache.view();
    args.heads = heads;
    args.scale = 1.0F / __builtin_sqrtf(static_cast<float>(cache.view().head_dim));
    args.pages = row_pages.data();
    args.positions = positions.data();
    scratch.resize(attention_scratch_bytes(cache.view().head_dim) / sizeof(float) + 16);
  }
  AttentionRun(const AttentionRun&) = delete;
  AttentionRun& operator=(const AttentionRun&) = delete;

  void decode(const AttentionVariant& variant, int row_begin, int row_end) {
    std::int64_t keys = 0;
    for (int r = row_begin; r < row_end; ++r)
      keys = std::max<std::int64_t>(keys, positions[static_cast<std::size_t>(r)] + 1);
    const int splits = attention_splits(keys);
    std::vector<float> partials(
        attention_partial_floats(row_end - row_begin, args.heads, args.kv.head_dim, splits) + 16,
        std::bit_cast<float>(0x7FFF7FFFU));
    float* aligned = align(partials.data());
    for (int split = splits - 1; split >= 0; --split) {  // any order
      for (int h = 0; h < args.kv.kv_heads; ++h) {
        variant.split(args, row_begin, row_end, h, split, splits, aligned, thread_scratch());
      }
    }
    for (int h = 0; h < args.kv.kv_heads; ++h)
      variant.merge(args, row_begin, row_end, h, splits, aligned);
  }
  void prefill(const AttentionVariant& variant, int row_begin, int row_end) {
    for (int h = 0; h < args.kv.kv_heads; ++h)
      variant.prefill(args, row_begin, row_end, h, thread_scratch());
  }
  [[nodiscard]] std::byte* thread_scratch() {
    return reinterpret_cast<std::byte*>(align(scratch.data()));
  }
  [[nodiscard]] static float* align(float* p) {
    return reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(p) + 63) / 64 * 64);
  }

  AttentionArgs args;
  std::vector<const std::uint32_t*> row_pages;
  std::vector<std::int32_t> positions;
  std::vector<float> scratch;
};

}  // namespace tern::cpu::testing
