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
  int core = 0;                // physical core, numbered from 0 over the whole machine
  bool is_performance = true;  // false: a small core of a hybrid processor
};

// A value, read once when the engine is made. What cannot be read is no limit.
struct CpuTopology {
  std::vector<Cpu> cpus;  // online, ascending by id, before any limit
  std::vector<int>
      allowed_cpus;  // online, in the affinity mask and in the group's cpuset, ascending
  // The physical performance cores among the allowed processors (all physical ones, where only
  // small cores are allowed), each as its lowest allowed processor, ascending: one thread each, and
  // where to pin it.
  std::vector<int> performance_cores;
  std::optional<double>
      cpu_quota;  // processors' worth of time that the group may use (1.5), where limited
  // min(allowed processors, quota rounded up, performance cores), at least 1.
  int default_threads = 1;

  std::optional<std::uint64_t> total_memory_bytes;  // of the machine
  std::optional<std::uint64_t>
      memory_limit_bytes;  // of the group: the strictest on the way to the root
  // min(what the machine can still give, the group's limit less its use; file cache that can be
  // dropped is no use).
  std::optional<std::uint64_t> available_memory_bytes;
};

// The affinity mask of this process as processor ids; empty where the system does not tell.
[[nodiscard]] std::vector<int> process_affinity();

// Reads <root>/sys and <root>/proc; tests give a tree of their own. An empty affinity is no
// restriction.
[[nodiscard]] CpuTopology read_topology(const std::filesystem::path& root = "/",
                                        const std::vector<int>& affinity = process_affinity());

// "0-3,8,10-11" as numbers, ascending and without duplicates; nothing when it is no such list or
// names a number above 65,535. An empty text is an empty list.
[[nodiscard]] std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

}  // namespace tern
