#include "backend/profile_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>

#include "backend/shipped_profiles.h"

namespace tern::backend {
namespace {

constexpr std::size_t kMostBytes = 65536;
constexpr double kGiB = 1024.0 * 1024 * 1024;

constexpr CpuFeatures kAvx2Set{CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c};
constexpr CpuFeatures kAvx512Set =
    kAvx2Set.with({CpuFeature::kAvx512f, CpuFeature::kAvx512bw, CpuFeature::kAvx512dq,
                   CpuFeature::kAvx512vl, CpuFeature::kAvx512vnni});

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// A number above 0, or what was wrong with it.
std::optional<double> positive(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value <= 0 || value > 1e15) return std::nullopt;
  return value;
}

class Reader {
 public:
  Result<DeviceProfile> read(std::string_view text) {
    if (text.size() > kMostBytes)
      return fail(ErrorCode::kInvalidFile, "a profile has at most {} bytes", kMostBytes);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      const std::string_view whole = text.substr(0, end);
      const std::string_view line = trimmed(whole.substr(0, whole.find('#')));
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!line.empty()) TERN_TRY(read_line(line));
    }
    return finish();
  }

 private:
  [[nodiscard]] Error bad(std::string_view what) const {
    return fail(ErrorCode::kInvalidFile, "line {}: {}", line_, what);
  }

  Result<void> read_line(std::string_view line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) return bad("expected KEY = VALUE");
    const std::string_view key = trimmed(line.substr(0, equals));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (value.empty()) return bad(fmt::format("'{}' has no value", key));
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end())
      return bad(fmt::format("'{}' stands twice", key));
    seen_.emplace_back(key);
    if (key == "name") return set(profile_.name, value);
    if (key == "architecture") return set(profile_.architecture, value);
    if (key == "maker_name") return set(profile_.maker_name, value);
    if (key == "kind") return read_kind(value);
    if (key == "isa") return read_isa(value);
    return read_number(key, value);
  }

  static Result<void> set(std::string& member, std::string_view value) {
    member = value;
    return {};
  }

  Result<void> read_kind(std::string_view value) {
    for (const DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kCuda, DeviceKind::kMetal}) {
      if (value != to_string(kind)) continue;
      profile_.kind = kind;
      return {};
    }
    return bad(fmt::format("kind is '{}', expected cpu, cuda or metal", value));
  }

  Result<void> read_isa(std::string_view value) {
    if (value == "avx512") {
      profile_.cpu = kAvx512Set;
    } else if (value == "avx2") {
      profile_.cpu = kAvx2Set;
    } else if (value != "portable") {
      return bad(fmt::format("isa is '{}', expected avx512, avx2 or portable", value));
    }
    return {};
  }

  Result<void> read_number(std::string_view key, std::string_view text) {
    const std::optional<double> value = positive(text);
    if (!value) return bad(fmt::format("'{}' is '{}', expected a number above 0", key, text));
    const auto peak = [&](Arithmetic a) -> FlopPerSecond& {
      return rates_.peak[static_cast<std::size_t>(a)];
    };
    if (key == "memory_gib") {
      profile_.memory_bytes = static_cast<std::uint64_t>(*value * kGiB);
    } else if (key == "cores") {
      if (*value > 100000) return bad("'cores' is above 100,000");
      profile_.cores = static_cast<int>(*value);
    } else if (key == "launch_us") {
      rates_.launch = microseconds(*value);
      ++rate_lines_;
    } else if (key == "read_gbps") {
      rates_.bandwidth = gigabytes_per_second(*value);
      ++rate_lines_;
    } else if (key == "f32_tflops" || key == "f16_tflops" || key == "bf16_tflops" ||
               key == "integer_tops") {
      const Arithmetic a = key == "f32_tflops"    ? Arithmetic::kF32
                           : key == "f16_tflops"  ? Arithmetic::kF16
                           : key == "bf16_tflops" ? Arithmetic::kBf16
                                                  : Arithmetic::kInteger;
      peak(a) = gigaflop_per_second(*value * 1e3);
      ++rate_lines_;
    } else {
      return bad(fmt::format("there is no key '{}'", key));
    }
    return {};
  }

  Result<DeviceProfile> finish() {
    for (std::string_view key : {"name", "kind", "architecture", "memory_gib", "cores"})
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end())
        return fail(ErrorCode::kInvalidFile, "the profile has no '{}'", key);
    constexpr int kRateLines = 6;
    if (rate_lines_ != 0 && rate_lines_ != kRateLines)
      return fail(ErrorCode::kInvalidFile,
                  "the profile has {} of the {} rates (launch_us, read_gbps, f32_tflops, "
                  "f16_tflops, bf16_tflops, integer_tops); give all or none",
                  rate_lines_, kRateLines);
    profile_.total_memory_bytes = profile_.memory_bytes;
    rates_.cores = profile_.cores;
    if (rate_lines_ != 0) profile_.rates = rates_;
    return profile_;
  }

  DeviceProfile profile_;
  DeviceRates rates_;
  std::vector<std::string> seen_;
  int rate_lines_ = 0;
  int line_ = 0;
};

std::string names_of_shipped() {
  std::string names;
  for (const ShippedProfile& p : shipped_profile_texts())
    names += (names.empty() ? "" : ", ") + std::string(p.name);
  return names;
}

}  // namespace

Result<DeviceProfile> parse_profile(std::string_view text) { return Reader().read(text); }

std::vector<std::string_view> shipped_profiles() {
  std::vector<std::string_view> names;
  for (const ShippedProfile& p : shipped_profile_texts()) names.push_back(p.name);
  return names;
}

Result<DeviceProfile> find_profile(const std::string& name_or_path) {
  for (const ShippedProfile& p : shipped_profile_texts())
    if (p.name == name_or_path) return parse_profile(p.text);
  std::ifstream file(name_or_path, std::ios::binary);
  if (!file)
    return fail(ErrorCode::kNotFound,
                "there is no profile and no file of this name; the profiles that ship are {}",
                names_of_shipped());
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.gcount() == 0 && !file.eof()))
    return fail(ErrorCode::kIo, "the profile cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return parse_profile(text);
}

}  // namespace tern::backend
