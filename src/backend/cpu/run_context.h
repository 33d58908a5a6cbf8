// What one step of the program sees while it runs on the CPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/vendor_gemm.h"
#include "base/cancellation.h"
#include "base/thread_pool.h"
#include "program/batch.h"
#include "program/value.h"

namespace tern::cpu {

// Rows of floats in the arena: a whole value or a slice of one.
struct RowsRef {
  float* data = nullptr;
  std::int64_t stride = 0;  // floats
  std::int64_t width = 0;
  program::RowAxis axis = program::RowAxis::kRows;
};

// Cosines and sines of one rope table for the rows of the step.
struct RopeRows {
  const double* frequency = nullptr;
  double attention_factor = 1;
  int pairs = 0;
  float* cos = nullptr;  // [rows][pairs]
  float* sin = nullptr;
};

struct RunContext {
  ThreadPool& pool;
  const program::BatchBlock& batch;
  const CancelToken& cancel;
  const std::uint32_t* const* pages = nullptr;  // [rows] page table of the row's sequence
  std::byte* worker_scratch = nullptr;          // worker_scratch_bytes for each thread of the pool
  std::size_t worker_scratch_bytes = 0;
  float* attention_partials = nullptr;
  std::size_t attention_partial_floats = 0;
  std::atomic<std::uint32_t>& kv_flags;
  backend::VendorGemm* vendor = nullptr;  // null: no product of the plan is the vendor's
  backend::EncodeContext* vendor_context = nullptr;

  [[nodiscard]] int rows() const { return batch.rows(); }
  [[nodiscard]] int count(program::RowAxis axis) const {
    return axis == program::RowAxis::kRows ? rows() : static_cast<int>(batch.output_rows.size());
  }
  [[nodiscard]] std::byte* scratch_of(int worker) const {
    return worker_scratch + static_cast<std::size_t>(worker) * worker_scratch_bytes;
  }

  // Calls f(begin, end) over rows [0, count): in one piece on this thread where the work is too
  // small to share (a parallel section costs one to three microseconds), else in parallel. `cost`
  // is about how many elements a row touches.
  template <class F>
  void for_rows(int count, std::int64_t cost, F&& f) {
    constexpr std::int64_t kWorthSharing = 16384;
    if (count <= 1 || count * cost < kWorthSharing) {
      if (count > 0) f(0, count);
      return;
    }
    pool.parallel_for(count, pool.chunk_for(count), [&](std::int64_t begin, std::int64_t end, int) {
      if (!cancel.requested()) f(static_cast<int>(begin), static_cast<int>(end));
    });
  }
};

}  // namespace tern::cpu
