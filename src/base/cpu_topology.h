// How many threads and how much memory this process may use: processors, affinity and the limits of
// its container.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace tern {

struct Cpu {
  int id = 0;
  int package = 0;
  int core = 0;                // unique within the package
  bool is_performance = true;  // false: a small core of a hybrid processor
};

// A value, read once when the engine is made. What cannot be read is no limit.
struct CpuTopology {
  std::vector<Cpu> cpus;  // online, ascending by id; before any limit
  std::vector<int>
      allowed_cpus;           // online, in the affinity mask and in the group's cpuset, ascending
  int performance_cores = 1;  // physical performance cores among the allowed processors
  std::optional<double>
      cpu_quota;  // processors' worth of time that the group may use (1.5), where limited
  int default_threads =
      1;  // min(allowed processors, quota rounded up, performance cores), at least 1
  // One processor per physical performance core, the one with the lowest id, ascending: where to
  // pin threads.
  std::vector<int> one_cpu_per_core;

  std::optional<std::uint64_t> total_memory_bytes;  // of the machine
  std::optional<std::uint64_t> memory_limit_bytes;  // of the group, the strictest up to the root
  std::optional<std::uint64_t>
      available_memory_bytes;  // min of the machine's and the group's free memory
};

// The affinity mask of this process as processor ids; empty where the system does not tell (then:
// all).
[[nodiscard]] std::vector<int> process_affinity();

// Reads <root>/sys and <root>/proc; tests give a fake tree. An empty affinity is no restriction.
[[nodiscard]] CpuTopology read_topology(const std::filesystem::path& root = "/",
                                        const std::vector<int>& affinity = process_affinity());

// "0-3,8,10-11" as numbers, ascending and without duplicates; nothing when it is not such a list or
// holds more than 65,536 of them.
[[nodiscard]] std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

}  // namespace tern
