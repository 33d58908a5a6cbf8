#include "backend/gpu/profiles/profiles.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>

#include "backend/gpu/profiles/shipped.h"

namespace tern::gpu {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// A positive finite number, whole text.
std::optional<double> number_of(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || *end != '\0' || !std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

std::optional<backend::DeviceKind> kind_of(std::string_view text) {
  if (text == "cpu") return backend::DeviceKind::kCpu;
  if (text == "cuda") return backend::DeviceKind::kCuda;
  if (text == "metal") return backend::DeviceKind::kMetal;
  return std::nullopt;
}

constexpr double kMostGib = 1 << 20;
constexpr double kMostCores = 1 << 20;

// Sets one field; false: the value is none.
bool set_field(backend::DeviceProfile& p, std::string_view key, std::string_view value) {
  if (key == "name" || key == "architecture") {
    (key == "name" ? p.name : p.architecture) = value;
    return !value.empty();
  }
  if (key == "kind") {
    const auto kind = kind_of(value);
    if (kind) p.kind = *kind;
    return kind.has_value();
  }
  const auto number = number_of(value);
  if (!number) return false;
  if (key == "memory_gib") {
    if (*number > kMostGib) return false;
    p.memory_bytes = static_cast<std::uint64_t>(*number * (1 << 30));
  } else if (key == "read_gbps") {
    p.read_gbps = *number;
  } else if (key == "fused_multiply_adds_per_s") {
    p.fused_multiply_adds = *number;
  } else {
    if (*number > kMostCores || *number != std::floor(*number)) return false;
    p.cores = static_cast<int>(*number);
  }
  return true;
}

constexpr std::string_view kKeys[] = {"name",
                                      "kind",
                                      "architecture",
                                      "memory_gib",
                                      "read_gbps",
                                      "cores",
                                      "fused_multiply_adds_per_s"};

}  // namespace

std::vector<std::string_view> profile_names() {
  std::vector<std::string_view> names;
  for (const ShippedProfile& profile : kShippedProfiles) names.push_back(profile.name);
  return names;
}

Result<backend::DeviceProfile> parse_profile(std::string_view text, std::string_view where) {
  backend::DeviceProfile profile;
  std::set<std::string, std::less<>> seen;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    const std::string_view key = trimmed(line.substr(0, equals));
    const bool is_known = std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
    if (equals == std::string_view::npos || !is_known)
      return fail(ErrorCode::kInvalidFile, "{}: line {} has the key '{}', expected one of {}",
                  where, number, key, fmt::join(kKeys, ", "));
    if (!seen.insert(std::string(key)).second)
      return fail(ErrorCode::kInvalidFile, "{}: line {} sets '{}' a second time", where, number,
                  key);
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (!set_field(profile, key, value))
      return fail(ErrorCode::kInvalidFile, "{}: line {} sets '{}' to '{}', which is no value of it",
                  where, number, key, value);
  }
  for (const std::string_view key : {"name", "kind", "architecture"})
    if (!seen.contains(key))
      return fail(ErrorCode::kInvalidFile, "{}: there is no line '{} = ...'", where, key);
  return profile;
}

Result<backend::DeviceProfile> load_profile(std::string_view name_or_path) {
  for (const ShippedProfile& profile : kShippedProfiles)
    if (profile.name == name_or_path) return parse_profile(profile.text, profile.name);
  const std::filesystem::path path(name_or_path);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return fail(ErrorCode::kNotFound,
                "there is no profile '{}' and no such file; Tern ships the profiles {}",
                name_or_path, fmt::join(profile_names(), ", "));
  // A profile is a page; what is larger is something else.
  constexpr std::uintmax_t kMostBytes = 64 * 1024;
  if (const std::uintmax_t bytes = std::filesystem::file_size(path, error);
      error || bytes > kMostBytes)
    return fail(ErrorCode::kInvalidFile,
                "{} is no device profile: it has {} bytes, at most {} are read", name_or_path,
                bytes, kMostBytes);
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof()) return fail(ErrorCode::kIo, "{} cannot be read", name_or_path);
  return parse_profile(text, name_or_path);
}

}  // namespace tern::gpu
