// What the benchmarks of kernels share: random values, memory that is rotated past the cache, the
// read ceiling of the same process, and the counters.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

namespace tern::cpu::bench {

// Time on the processor of this thread: other programs of the machine do not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static time_point now() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v.empty() ? 0 : v[v.size() / 2];
}

inline std::vector<float> normal_values(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(count);
  for (float& v : x) v = normal(random);
  return x;
}

struct AlignedFree {
  void operator()(std::byte* p) const { std::free(p); }  // NOLINT(cppcoreguidelines-no-malloc)
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedFree>;

// On a boundary of 2 MiB, so that the system may give large pages.
inline AlignedBytes aligned(std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  return AlignedBytes(static_cast<std::byte*>(
      std::aligned_alloc(kHuge, std::max<std::size_t>(1, (bytes + kHuge - 1) / kHuge) * kHuge)));
}

// How many bytes a benchmark goes through before it comes to the same buffer again: three times the
// last cache where its size is known, so that the buffer has left it.
inline std::size_t past_cache_bytes() {
  constexpr std::size_t kLeast = std::size_t{256} << 20;
  constexpr std::size_t kMost = std::size_t{1} << 30;
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0) return std::clamp(3 * static_cast<std::size_t>(cache), kLeast, kMost);
#endif
  return kMost;
}

// GB/s of one plain read by this thread: one word of every line, so that the arithmetic of an
// unoptimised build is no limit, in four streams. kAhead: how many bytes in front of the loads are
// prefetched; 0 leaves that to the processor. kFar: the streams are the quarters of the memory and
// not neighbouring lines; a product that reads several rows at once is such a reader.
template <std::size_t kAhead, bool kFar>
double read_once_gbps(std::span<const std::byte> memory) {
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kStreams = 4;
  const auto start = Clock::now();
  const std::size_t lines = memory.size() / kLine / kStreams;  // of a stream
  const std::size_t apart = kFar ? lines * kLine : kLine;
  const std::size_t step = kFar ? kLine : kStreams * kLine;
  std::uint64_t sums[kStreams] = {};
  const std::byte* at = memory.data();
  for (std::size_t i = 0; i < lines; ++i, at += step) {
    for (std::size_t j = 0; j < kStreams; ++j) {
      const std::byte* line = at + j * apart;
      if constexpr (kAhead > 0) __builtin_prefetch(line + kAhead);
      std::uint64_t word;
      std::memcpy(&word, line, sizeof word);
      sums[j] += word;
    }
  }
  for (std::uint64_t s : sums) benchmark::DoNotOptimize(s);
  return static_cast<double>(lines * kStreams * kLine) / seconds_since(start) / 1e9;
}

// The ceiling: the best of several ways of reading, each the median of three parts of the memory
// that nobody else reads. Only memory beyond the cache gives the bandwidth of the memory.
inline double read_ceiling_gbps(std::span<const std::byte> memory) {
  constexpr std::size_t kParts = 3;
  using Reader = double (*)(std::span<const std::byte>);
  constexpr std::array<Reader, 4> kReaders = {read_once_gbps<0, false>, read_once_gbps<2048, false>,
                                              read_once_gbps<0, true>, read_once_gbps<1024, true>};
  const std::size_t bytes = memory.size() / (kReaders.size() * kParts) / 64 * 64;
  double best = 0;
  for (std::size_t r = 0; r < kReaders.size(); ++r) {
    std::vector<double> rates;
    for (std::size_t part = 0; part < kParts; ++part) {
      rates.push_back(kReaders[r](memory.subspan((r * kParts + part) * bytes, bytes)));
    }
    best = std::max(best, median(rates));
  }
  return best;
}

enum class Residence { kPastCache, kCached };

// Copies of one buffer, used in turns; a benchmark whose name ends in _cached has a single one.
class Rotation {
 public:
  Rotation(std::span<const std::byte> original, Residence residence)
      : stride_((original.size() + 63) / 64 * 64),
        count_(residence == Residence::kCached
                   ? 1
                   : std::max<std::size_t>(2, past_cache_bytes() / stride_ + 1)),
        memory_(aligned(stride_ * count_)) {
    for (std::size_t i = 0; i < count_; ++i) {
      std::memcpy(memory_.get() + i * stride_, original.data(), original.size());
    }
    ceiling_gbps_ =
        residence == Residence::kCached ? 0 : read_ceiling_gbps({memory_.get(), stride_ * count_});
  }
  // The copy whose turn it is, aligned to 64.
  [[nodiscard]] std::byte* next() { return memory_.get() + turn_++ % count_ * stride_; }
  // 0 for _cached: the bandwidth of memory says nothing about it.
  [[nodiscard]] double ceiling_gbps() const { return ceiling_gbps_; }

 private:
  std::size_t stride_;
  std::size_t count_;
  AlignedBytes memory_;
  std::size_t turn_ = 0;
  double ceiling_gbps_ = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// GB/s of `bytes` per iteration and their share of the ceiling (0: none).
inline void report_bytes(benchmark::State& state, double bytes, double ceiling_gbps) {
  const double total = bytes * static_cast<double>(state.iterations()) / 1e9;
  state.counters["GB/s"] = benchmark::Counter(total, benchmark::Counter::kIsRate);
  if (ceiling_gbps <= 0) return;
  state.counters["read_GB/s"] = ceiling_gbps;
  state.counters["share"] = benchmark::Counter(total / ceiling_gbps, benchmark::Counter::kIsRate);
}

// Billions of multiply-adds per second.
inline void report_products(benchmark::State& state, double products) {
  state.counters["GMAC/s"] = benchmark::Counter(
      products * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate);
}

}  // namespace tern::cpu::bench
