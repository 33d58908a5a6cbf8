// Asks the processor (cpuid, xgetbv) or the system (hwcaps) what it offers.
#include "base/cpu_features.h"

#include <array>
#include <string_view>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tern {
namespace {

constexpr std::array kNames = {
    std::pair{CpuFeature::kAvx2, std::string_view("AVX2")},
    std::pair{CpuFeature::kFma, std::string_view("FMA")},
    std::pair{CpuFeature::kF16c, std::string_view("F16C")},
    std::pair{CpuFeature::kAvx512f, std::string_view("AVX512F")},
    std::pair{CpuFeature::kAvx512bw, std::string_view("AVX512BW")},
    std::pair{CpuFeature::kAvx512dq, std::string_view("AVX512DQ")},
    std::pair{CpuFeature::kAvx512vl, std::string_view("AVX512VL")},
    std::pair{CpuFeature::kAvx512vnni, std::string_view("AVX512-VNNI")},
    std::pair{CpuFeature::kAvx512vbmi, std::string_view("AVX512-VBMI")},
    std::pair{CpuFeature::kAvxVnni, std::string_view("AVX-VNNI")},
    std::pair{CpuFeature::kNeon, std::string_view("NEON")},
    std::pair{CpuFeature::kDotprod, std::string_view("DOTPROD")},
};

#if defined(__x86_64__)

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

// XCR0: which register files the operating system saves. In assembly, because the intrinsic needs
// -mxsave.
std::uint64_t saved_register_files() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

CpuFeatures probe() {
  const Registers leaf1 = cpuid(1, 0);
  const auto bit = [](std::uint32_t reg, int n) { return ((reg >> n) & 1u) != 0; };
  constexpr int kOsxsave = 27;
  if (!bit(leaf1.ecx, kOsxsave)) return {};
  const std::uint64_t saved = saved_register_files();
  constexpr std::uint64_t kAvxState = 0x06;     // SSE and AVX registers
  constexpr std::uint64_t kAvx512State = 0xe6;  // and masks, upper halves, registers 16 to 31
  const bool has_avx = bit(leaf1.ecx, 28) && (saved & kAvxState) == kAvxState;
  if (!has_avx) return {};

  const Registers leaf7 = cpuid(7, 0);
  CpuFeatures found;
  const auto add = [&found](CpuFeature f, bool is_present) {
    if (is_present) found = found.with({f});
  };
  add(CpuFeature::kFma, bit(leaf1.ecx, 12));
  add(CpuFeature::kF16c, bit(leaf1.ecx, 29));
  add(CpuFeature::kAvx2, bit(leaf7.ebx, 5));
  if (leaf7.eax >= 1) add(CpuFeature::kAvxVnni, bit(cpuid(7, 1).eax, 4));
  if ((saved & kAvx512State) == kAvx512State && bit(leaf7.ebx, 16)) {
    add(CpuFeature::kAvx512f, true);
    add(CpuFeature::kAvx512dq, bit(leaf7.ebx, 17));
    add(CpuFeature::kAvx512bw, bit(leaf7.ebx, 30));
    add(CpuFeature::kAvx512vl, bit(leaf7.ebx, 31));
    add(CpuFeature::kAvx512vbmi, bit(leaf7.ecx, 1));
    add(CpuFeature::kAvx512vnni, bit(leaf7.ecx, 11));
  }
  return found;
}

#elif defined(__aarch64__)

CpuFeatures probe() {
  CpuFeatures found = {CpuFeature::kNeon};  // part of the base architecture
#if defined(__linux__)
  if ((::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) found = found.with({CpuFeature::kDotprod});
#elif defined(__APPLE__)
  found = found.with({CpuFeature::kDotprod});  // every Apple processor with 64 bits that runs macOS
#endif
  return found;
}

#else

CpuFeatures probe() { return {}; }

#endif

}  // namespace

CpuFeatures cpu_features() {
  static const CpuFeatures features = probe();
  return features;
}

std::string to_string(CpuFeatures features) {
  std::string text;
  for (const auto& [feature, name] : kNames) {
    if (!features.contains({feature})) continue;
    if (!text.empty()) text += ' ';
    text += name;
  }
  return text;
}

}  // namespace tern
