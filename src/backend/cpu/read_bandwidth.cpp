#include "backend/cpu/read_bandwidth.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/aligned_buffer.h"

namespace tern::cpu {
namespace {

constexpr std::int64_t kChunk = 1 << 20;
constexpr int kPasses = 3;
constexpr std::size_t kWords = kChunk / sizeof(std::uint64_t);
constexpr std::size_t kLineWords = 8;

// Eight independent sums: enough loads in flight to fill the memory system, and simple enough to
// vectorise. kAhead: how many words in front of the loads are prefetched; 0 leaves that to the
// hardware, which stops at the ends of pages.
template <std::size_t kAhead>
std::uint64_t sum_of(const std::uint64_t* p, std::size_t count) {
  std::uint64_t sums[kLineWords] = {};
  for (std::size_t i = 0; i + kLineWords <= count; i += kLineWords) {
    if constexpr (kAhead > 0) __builtin_prefetch(p + i + kAhead);
    for (std::size_t j = 0; j < kLineWords; ++j) sums[j] += p[i + j];
  }
  std::uint64_t total = 0;
  for (std::uint64_t s : sums) total += s;
  return total;
}

using SumFn = std::uint64_t (*)(const std::uint64_t*, std::size_t);
constexpr std::array<SumFn, 2> kReaders = {sum_of<0>, sum_of<256>};

// Three times the last cache, where its size is known.
std::int64_t chunks_beyond_caches() {
  constexpr std::int64_t kLeast = 256;
  constexpr std::int64_t kMost = 1024;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const std::int64_t cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::clamp(3 * cache / kChunk, kLeast, kMost);
#else
  return kLeast;
#endif
}

double pass_gbps(ThreadPool& pool, const std::uint64_t* words, std::int64_t chunks, SumFn sum,
                 std::atomic<std::uint64_t>& sink) {
  const auto start = std::chrono::steady_clock::now();
  pool.parallel_for(chunks, 4, [&](std::int64_t begin, std::int64_t end, int) {
    sink.fetch_add(sum(words + static_cast<std::size_t>(begin) * kWords,
                       static_cast<std::size_t>(end - begin) * kWords),
                   std::memory_order_relaxed);
  });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return static_cast<double>(chunks * kChunk) / taken.count() * 1e-9;
}

}  // namespace

double measure_read_gbps(ThreadPool& pool) {
  const std::int64_t chunks = chunks_beyond_caches();
  Result<AlignedBuffer> memory =
      AlignedBuffer::allocate(static_cast<std::size_t>(chunks * kChunk),
                              {.huge_pages = true, .what = "the bandwidth measurement"});
  if (!memory.ok()) return 0;
  auto* words = reinterpret_cast<std::uint64_t*>(memory->data());
  pool.parallel_for(chunks, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::size_t i = static_cast<std::size_t>(begin) * kWords;
         i < static_cast<std::size_t>(end) * kWords; ++i)
      words[i] = i * 0x9E3779B97F4A7C15U;
  });
  std::atomic<std::uint64_t> sink = 0;  // keeps the reads
  std::array<std::array<double, kPasses>, kReaders.size()> rates = {};
  for (int pass = 0; pass < kPasses; ++pass)
    for (std::size_t r = 0; r < kReaders.size(); ++r)
      rates[r][static_cast<std::size_t>(pass)] = pass_gbps(pool, words, chunks, kReaders[r], sink);
  double best = 0;
  for (auto& of_reader : rates) {
    std::nth_element(of_reader.begin(), of_reader.begin() + kPasses / 2, of_reader.end());
    best = std::max(best, of_reader[kPasses / 2]);
  }
  return best;
}

}  // namespace tern::cpu
