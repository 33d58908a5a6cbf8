#include "backend/cpu/read_bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"

namespace tern::cpu {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;
constexpr std::int64_t kChunk = 1 << 20;
constexpr int kPasses = 7;

// Eight independent sums: enough loads in flight to fill the memory system, and simple enough to
// vectorise.
std::uint64_t sum_of(const std::uint64_t* p, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i + 8 <= count; i += 8)
    for (std::size_t j = 0; j < 8; ++j) sums[j] += p[i + j];
  std::uint64_t total = 0;
  for (std::uint64_t s : sums) total += s;
  return total;
}

}  // namespace

double measure_read_gbps(ThreadPool& pool) {
  Result<AlignedBuffer> memory =
      AlignedBuffer::allocate(kBytes, {.huge_pages = true, .what = "the bandwidth measurement"});
  if (!memory.ok()) return 0;
  auto* words = reinterpret_cast<std::uint64_t*>(memory->data());
  const auto chunks = static_cast<std::int64_t>(kBytes) / kChunk;
  constexpr std::size_t kWords = kChunk / sizeof(std::uint64_t);
  pool.parallel_for(chunks, 16, [&](std::int64_t begin, std::int64_t end, int) {
    std::uint64_t x = static_cast<std::uint64_t>(begin) * 0x9E3779B97F4A7C15U + 1;
    for (std::size_t i = static_cast<std::size_t>(begin) * kWords;
         i < static_cast<std::size_t>(end) * kWords; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      words[i] = x;
    }
  });
  std::atomic<std::uint64_t> sink = 0;  // keeps the reads
  std::vector<double> rates;
  for (int pass = 0; pass < kPasses; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(chunks, 4, [&](std::int64_t begin, std::int64_t end, int) {
      sink.fetch_add(sum_of(words + static_cast<std::size_t>(begin) * kWords,
                            static_cast<std::size_t>(end - begin) * kWords),
                     std::memory_order_relaxed);
    });
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    rates.push_back(static_cast<double>(kBytes) / taken.count() * 1e-9);
  }
  std::nth_element(rates.begin(), rates.begin() + kPasses / 2, rates.end());
  return rates[kPasses / 2];
}

}  // namespace tern::cpu
