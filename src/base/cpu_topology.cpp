#include "base/cpu_topology.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include "base/control_groups.h"

#if defined(__linux__)
#include <sched.h>
#endif

namespace tern {
namespace {

namespace fs = std::filesystem;

constexpr int kMostCpus = 65'536;

std::optional<std::vector<int>> cpu_list_of_file(const fs::path& path) {
  const auto text = read_system_file(path);
  return text ? parse_cpu_list(*text) : std::nullopt;
}

std::optional<int> number_of_file(const fs::path& path) {
  const auto text = read_system_file(path);
  const auto value = text ? parse_decimal(*text) : std::nullopt;
  if (!value || *value > 1'000'000'000) return std::nullopt;
  return static_cast<int>(*value);
}

std::vector<int> intersection(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

// The ids of the processors that are on; where the system does not tell, those that we may use.
std::vector<int> online_cpus(const fs::path& root, const std::vector<int>& affinity) {
  const auto online = cpu_list_of_file(root / "sys/devices/system/cpu/online");
  if (online && !online->empty()) return *online;
  if (!affinity.empty()) return affinity;
  std::vector<int> result(std::max(1u, std::thread::hardware_concurrency()));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

// What tells one physical core from another. The siblings are the surest; core ids repeat in every
// package.
std::tuple<int, int, int> core_key(const fs::path& topology, int id) {
  const auto siblings = cpu_list_of_file(topology / "thread_siblings_list");
  if (siblings && !siblings->empty()) return {0, 0, siblings->front()};
  const auto core = number_of_file(topology / "core_id");
  if (core) return {1, number_of_file(topology / "physical_package_id").value_or(0), *core};
  return {2, 0, id};
}

// Marks the small cores: by the list of big ones (Intel), or by a capacity below half of the
// largest (Arm: the middle cores of three sizes count as big, they have 0.7 and more; the little
// ones have 0.1 to 0.4).
void find_small_cores(const fs::path& root, std::vector<Cpu>& cpus) {
  if (const auto big = cpu_list_of_file(root / "sys/devices/cpu_core/cpus"); big && !big->empty()) {
    for (Cpu& cpu : cpus) {
      cpu.is_performance = std::binary_search(big->begin(), big->end(), cpu.id);
    }
    return;
  }
  std::vector<std::optional<int>> capacities;
  int most = 0;
  for (const Cpu& cpu : cpus) {
    const fs::path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu.id));
    capacities.push_back(number_of_file(folder / "cpu_capacity"));
    most = std::max(most, capacities.back().value_or(0));
  }
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    cpus[i].is_performance = !capacities[i] || *capacities[i] * 2LL >= most;
  }
}

std::vector<Cpu> read_cpus(const fs::path& root, const std::vector<int>& online) {
  std::map<std::tuple<int, int, int>, int> cores;
  std::vector<Cpu> cpus;
  for (const int id : online) {
    const fs::path folder = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(id));
    const auto key = core_key(folder / "topology", id);
    const int next = static_cast<int>(cores.size());
    cpus.push_back(
        {.id = id, .core = cores.try_emplace(key, next).first->second, .is_performance = true});
  }
  find_small_cores(root, cpus);
  return cpus;
}

// One processor for each physical core that has an allowed one, the lowest; big cores only, or all.
std::vector<int> one_per_core(const CpuTopology& t, bool big_only) {
  std::set<int> cores;
  std::vector<int> result;
  for (const Cpu& cpu : t.cpus) {
    if (big_only && !cpu.is_performance) continue;
    if (!std::binary_search(t.allowed_cpus.begin(), t.allowed_cpus.end(), cpu.id)) continue;
    if (cores.insert(cpu.core).second) result.push_back(cpu.id);
  }
  return result;
}

void read_memory(const fs::path& root, const ControlGroupLimits& limits, CpuTopology& t) {
  if (const auto text = read_system_file(root / "proc/meminfo")) {
    const auto bytes = [&text](std::string_view name) -> std::optional<std::uint64_t> {
      const auto kib = number_of_line(*text, name);
      if (!kib || *kib > (std::uint64_t{1} << 50)) return std::nullopt;
      return *kib * 1024;
    };
    t.total_memory_bytes = bytes("MemTotal:");
    t.available_memory_bytes = bytes("MemAvailable:");
    if (!t.available_memory_bytes) t.available_memory_bytes = bytes("MemFree:");
  }
  t.memory_limit_bytes = limits.memory_limit_bytes;
  if (limits.available_memory_bytes) {
    t.available_memory_bytes = std::min(t.available_memory_bytes.value_or(~std::uint64_t{0}),
                                        *limits.available_memory_bytes);
  }
}

}  // namespace

std::vector<int> process_affinity() {
  std::vector<int> result;
#if defined(__linux__)
  // The kernel refuses a set that is smaller than its own, so the set grows until it fits.
  for (int count = 1024; count <= kMostCpus; count *= 4) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(count));
    if (set == nullptr) return result;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    const bool is_read = ::sched_getaffinity(0, bytes, set) == 0;
    for (int id = 0; is_read && id < count; ++id) {
      if (CPU_ISSET_S(static_cast<std::size_t>(id), bytes, set)) result.push_back(id);
    }
    CPU_FREE(set);
    if (is_read) break;
  }
#endif
  return result;
}

CpuTopology read_topology(const fs::path& root, const std::vector<int>& affinity) {
  std::vector<int> mask = affinity;
  std::sort(mask.begin(), mask.end());
  CpuTopology t;
  const std::vector<int> online = online_cpus(root, mask);
  t.cpus = read_cpus(root, online);

  const ControlGroupLimits limits = read_control_groups(root);
  t.allowed_cpus = mask.empty() ? online : intersection(online, mask);
  for (const std::string& text : limits.cpu_lists) {
    const auto list = parse_cpu_list(text);
    if (list && !list->empty()) t.allowed_cpus = intersection(t.allowed_cpus, *list);
  }
  if (t.allowed_cpus.empty()) t.allowed_cpus = online;  // contradictions: none of them is a limit

  t.performance_cores = one_per_core(t, true);
  if (t.performance_cores.empty()) t.performance_cores = one_per_core(t, false);
  t.cpu_quota = limits.cpu_quota;
  std::size_t threads = std::min(t.allowed_cpus.size(), t.performance_cores.size());
  if (t.cpu_quota && *t.cpu_quota < static_cast<double>(threads)) {
    threads = static_cast<std::size_t>(std::ceil(*t.cpu_quota));
  }
  t.default_threads = static_cast<int>(std::max<std::size_t>(threads, 1));
  read_memory(root, limits, t);
  return t;
}

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::set<int> ids;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    const std::size_t dash = part.find('-');
    const auto first = parse_decimal(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_decimal(part.substr(dash + 1));
    if (!first || !last || *first > *last || *last >= kMostCpus) return std::nullopt;
    for (std::uint64_t id = *first; id <= *last; ++id) ids.insert(static_cast<int>(id));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return std::vector<int>(ids.begin(), ids.end());
}

}  // namespace tern
