// The limits of the process's control groups, versions 1 and 2, from the process's group up to the
// root.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern {

struct ControlGroupLimits {
  std::optional<double> cpu_quota;  // processors' worth of time; the strictest
  std::vector<std::string>
      cpu_lists;  // cpusets as the kernel writes them ("0-3"): all of them hold
  std::optional<std::uint64_t> memory_limit_bytes;      // the strictest
  std::optional<std::uint64_t> available_memory_bytes;  // the least of limit - use over the levels
};

// Reads <root>/proc/self/cgroup and <root>/sys/fs/cgroup. What cannot be read is no limit.
[[nodiscard]] ControlGroupLimits read_control_groups(const std::filesystem::path& root);

// The text of a small file of /proc or /sys without its trailing newline; nothing when it cannot be
// read.
[[nodiscard]] std::optional<std::string> read_system_file(const std::filesystem::path& path);
// A whole decimal number, or nothing.
[[nodiscard]] std::optional<std::uint64_t> parse_decimal(std::string_view text);
// The number after `name` and blanks in a text of lines "name number": of /proc/meminfo, of
// memory.stat.
[[nodiscard]] std::optional<std::uint64_t> number_of_line(std::string_view text,
                                                          std::string_view name);

}  // namespace tern
