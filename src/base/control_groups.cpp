#include "base/control_groups.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace tern {
namespace {

namespace fs = std::filesystem;

template <class T>
void keep_least(std::optional<T>& least, std::optional<T> value) {
  if (value && (!least || *value < *least)) least = value;
}

// Where the controller's hierarchy is mounted, and where the process is in it ("/user.slice/x").
struct Hierarchy {
  fs::path mount;
  fs::path group;
};

// The group, its parent, ... and the mount itself. Where the process sees the group's path of the
// host but only its own part of the hierarchy, the lower levels do not exist and the mount is the
// group.
std::vector<fs::path> levels(const Hierarchy& h) {
  std::vector<fs::path> result;
  fs::path group = h.group.relative_path().lexically_normal();
  constexpr int kMostLevels = 256;
  for (int i = 0; i < kMostLevels && !group.empty() && group != "." && *group.begin() != "..";
       ++i) {
    result.push_back(h.mount / group);
    group = group.parent_path();
  }
  result.push_back(h.mount);
  return result;
}

// The quota of one level of version 2: "150000 100000" or "max 100000".
std::optional<double> quota_v2(const fs::path& level) {
  const auto text = read_system_file(level / "cpu.max");
  if (!text) return std::nullopt;
  const std::size_t blank = text->find(' ');
  const auto quota = parse_decimal(std::string_view(*text).substr(0, blank));
  const auto period = blank == std::string::npos
                          ? std::optional<std::uint64_t>(100'000)
                          : parse_decimal(std::string_view(*text).substr(blank + 1));
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<std::uint64_t> number_of_file(const fs::path& path) {
  const auto text = read_system_file(path);
  return text ? parse_decimal(*text) : std::nullopt;
}

// Version 1 writes -1 for no quota, which is no decimal number here.
std::optional<double> quota_v1(const fs::path& level) {
  const auto quota = number_of_file(level / "cpu.cfs_quota_us");
  const auto period = number_of_file(level / "cpu.cfs_period_us");
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

void add_memory(ControlGroupLimits& limits, std::optional<std::uint64_t> limit,
                const fs::path& use_file, const fs::path& level, std::string_view cache_line) {
  // Version 1 writes the largest multiple of a page below 2^63 for no limit.
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;
  if (!limit || *limit >= kNoLimit) return;
  keep_least(limits.memory_limit_bytes, limit);
  std::uint64_t used = number_of_file(use_file).value_or(0);
  if (const auto stat = read_system_file(level / "memory.stat")) {
    used -= std::min(used, number_of_line(*stat, cache_line).value_or(0));
  }
  keep_least(limits.available_memory_bytes, std::optional(*limit - std::min(*limit, used)));
}

void add_cpus(ControlGroupLimits& limits, const fs::path& file) {
  const auto text = read_system_file(file);
  if (text && !text->empty()) limits.cpu_lists.push_back(*text);
}

void read_v2(const Hierarchy& h, ControlGroupLimits& limits) {
  for (const fs::path& level : levels(h)) {
    keep_least(limits.cpu_quota, quota_v2(level));
    add_cpus(limits, level / "cpuset.cpus.effective");
    add_cpus(limits, level / "cpuset.cpus");
    std::optional<std::uint64_t> limit = number_of_file(level / "memory.max");
    keep_least(limit, number_of_file(level / "memory.high"));
    add_memory(limits, limit, level / "memory.current", level, "inactive_file");
  }
}

void read_v1(std::string_view controller, const Hierarchy& h, ControlGroupLimits& limits) {
  for (const fs::path& level : levels(h)) {
    if (controller == "cpu") {
      keep_least(limits.cpu_quota, quota_v1(level));
    } else if (controller == "cpuset") {
      add_cpus(limits, level / "cpuset.effective_cpus");
      add_cpus(limits, level / "cpuset.cpus");
    } else if (controller == "memory") {
      add_memory(limits, number_of_file(level / "memory.limit_in_bytes"),
                 level / "memory.usage_in_bytes", level, "total_inactive_file");
    }
  }
}

// Calls f(part) for the parts of text between separators.
template <class F>
void for_each_part(std::string_view text, char separator, F f) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    f(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// One line of /proc/self/cgroup: "4:memory:/docker/x", or "0::/user.slice" for version 2.
void read_line(std::string_view line, const fs::path& mounts, ControlGroupLimits& limits) {
  const std::size_t first = line.find(':');
  const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return;
  const std::string_view controllers = line.substr(first + 1, second - first - 1);
  const fs::path group = line.substr(second + 1);
  std::error_code ignored;
  if (controllers.empty()) {
    const bool is_hybrid = fs::is_directory(mounts / "unified", ignored);
    read_v2({is_hybrid ? mounts / "unified" : mounts, group}, limits);
    return;
  }
  for_each_part(controllers, ',', [&](std::string_view controller) {
    const fs::path joined = mounts / controllers;
    const bool is_joined = fs::is_directory(joined, ignored);
    read_v1(controller, {is_joined ? joined : mounts / controller, group}, limits);
  });
}

}  // namespace

std::optional<std::string> read_system_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || error) return std::nullopt;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return std::nullopt;
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  std::string text;
  char piece[4096];
  while (text.size() < kMostBytes && stream) {
    stream.read(piece, sizeof piece);
    text.append(piece, static_cast<std::size_t>(stream.gcount()));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_of_line(std::string_view text, std::string_view name) {
  std::optional<std::uint64_t> result;
  for_each_part(text, '\n', [&](std::string_view line) {
    if (result || !line.starts_with(name)) return;
    line.remove_prefix(name.size());
    if (!line.starts_with(' ') && !line.starts_with('\t')) return;
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    const std::size_t end = std::min(line.find_first_not_of("0123456789", begin), line.size());
    result = parse_decimal(line.substr(begin, end - begin));
  });
  return result;
}

ControlGroupLimits read_control_groups(const fs::path& root) {
  ControlGroupLimits limits;
  const auto text = read_system_file(root / "proc/self/cgroup");
  if (!text) return limits;
  for_each_part(*text, '\n',
                [&](std::string_view line) { read_line(line, root / "sys/fs/cgroup", limits); });
  return limits;
}

}  // namespace tern
