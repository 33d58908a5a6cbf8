#include "backend/cpu/read_bandwidth.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "base/aligned_buffer.h"

namespace tern::cpu {
namespace {

constexpr std::int64_t kChunk = 1 << 20;
constexpr int kPasses = 3;
constexpr std::size_t kWords = kChunk / sizeof(std::uint64_t);

// Reads one word of every line, so that the arithmetic is no limit, in four streams. kAhead: how
// many bytes in front of the loads are prefetched; 0 leaves that to the processor. kFar: the
// streams are the quarters of the memory and not neighbouring lines; a product that reads several
// rows at once is such a reader.
template <std::size_t kAhead, bool kFar>
std::uint64_t sum_of(const std::byte* memory, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kStreams = 4;
  const std::size_t lines = bytes / kLine / kStreams;  // of a stream
  const std::size_t apart = kFar ? lines * kLine : kLine;
  const std::size_t step = kFar ? kLine : kStreams * kLine;
  std::uint64_t sums[kStreams] = {};
  for (std::size_t i = 0; i < lines; ++i, memory += step) {
    for (std::size_t j = 0; j < kStreams; ++j) {
      const std::byte* line = memory + j * apart;
      if constexpr (kAhead > 0) __builtin_prefetch(line + kAhead);
      std::uint64_t word;
      std::memcpy(&word, line, sizeof word);
      sums[j] += word;
    }
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

using SumFn = std::uint64_t (*)(const std::byte*, std::size_t);
constexpr std::array<SumFn, 4> kReaders = {sum_of<0, false>, sum_of<2048, false>, sum_of<0, true>,
                                           sum_of<1024, true>};

// Three times the last cache, where its size is known.
std::int64_t chunks_beyond_caches() {
  constexpr std::int64_t kLeast = 256;
  constexpr std::int64_t kMost = 1024;
  const auto cache = static_cast<std::int64_t>(last_cache_bytes());
  return cache > 0 ? std::clamp(3 * cache / kChunk, kLeast, kMost) : kMost;
}

double pass_gbps(ThreadPool& pool, const std::byte* memory, std::int64_t chunks, SumFn sum,
                 std::atomic<std::uint64_t>& sink) {
  const auto start = std::chrono::steady_clock::now();
  pool.parallel_for(chunks, 4, [&](std::int64_t begin, std::int64_t end, int) {
    sink.fetch_add(sum(memory + begin * kChunk, static_cast<std::size_t>((end - begin) * kChunk)),
                   std::memory_order_relaxed);
  });
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return static_cast<double>(chunks * kChunk) / taken.count() * 1e-9;
}

Result<AlignedBuffer> allocate(std::int64_t chunks) {
  return AlignedBuffer::allocate(static_cast<std::size_t>(chunks * kChunk),
                                 {.huge_pages = true, .what = "the bandwidth measurement"});
}

// Chunks [first, last).
void fill(ThreadPool& pool, std::byte* memory, std::int64_t first, std::int64_t last) {
  auto* words = reinterpret_cast<std::uint64_t*>(memory);
  pool.parallel_for(last - first, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::size_t i = static_cast<std::size_t>(first + begin) * kWords;
         i < static_cast<std::size_t>(first + end) * kWords; ++i)
      words[i] = i * 0x9E3779B97F4A7C15U;
  });
}

}  // namespace

std::uint64_t last_cache_bytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  return static_cast<std::uint64_t>(std::max<long>(0, ::sysconf(_SC_LEVEL3_CACHE_SIZE)));
#else
  return 0;
#endif
}

double measure_read_gbps(ThreadPool& pool) {
  const std::int64_t chunks = chunks_beyond_caches();
  Result<AlignedBuffer> memory = allocate(chunks);
  if (!memory.ok()) return 0;
  fill(pool, memory->data(), 0, chunks);
  std::atomic<std::uint64_t> sink = 0;  // keeps the reads
  std::array<std::array<double, kPasses>, kReaders.size()> rates = {};
  for (int pass = 0; pass < kPasses; ++pass)
    for (std::size_t r = 0; r < kReaders.size(); ++r)
      rates[r][static_cast<std::size_t>(pass)] =
          pass_gbps(pool, memory->data(), chunks, kReaders[r], sink);
  double best = 0;
  for (auto& of_reader : rates) {
    std::nth_element(of_reader.begin(), of_reader.begin() + kPasses / 2, of_reader.end());
    best = std::max(best, of_reader[kPasses / 2]);
  }
  return best;
}

double estimate_read_gbps(ThreadPool& pool, const CancelToken& cancel) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kFillTime = std::chrono::milliseconds(120);
  constexpr auto kTime = std::chrono::milliseconds(250);
  constexpr std::int64_t kAtOnce = 32;  // chunks between two looks at the clock
  constexpr auto kMostChunks = static_cast<std::int64_t>(kEstimateBytes) / kChunk;
  const auto check = [&cancel] {
    if (cancel.requested())
      throw fail(ErrorCode::kCancelled, "while the read bandwidth was measured");
  };
  const Clock::time_point start = Clock::now();
  Result<AlignedBuffer> memory = allocate(kMostChunks);
  if (!memory.ok()) return 0;
  std::int64_t chunks = 0;
  while (chunks < kMostChunks && (chunks == 0 || Clock::now() - start < kFillTime)) {
    check();
    fill(pool, memory->data(), chunks, chunks + kAtOnce);
    chunks += kAtOnce;
  }
  std::atomic<std::uint64_t> sink = 0;  // keeps the reads
  double best = 0;
  for (std::size_t pass = 0; pass == 0 || Clock::now() - start < kTime; ++pass) {
    check();
    best = std::max(
        best, pass_gbps(pool, memory->data(), chunks, kReaders[pass % kReaders.size()], sink));
  }
  return best;
}

}  // namespace tern::cpu
